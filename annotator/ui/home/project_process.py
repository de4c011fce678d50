"""One project's server process, which never outlives the start page."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.process_stop import send_stop_signal, watch_parent
from annotator.store.disk.file_permissions import set_private_umask
from annotator.ui.access.serving_modes import parse_access
from annotator.ui.server import serve


def main() -> None:
    """Serve one project, described as JSON by the first line of standard input."""
    set_private_umask()
    said: dict[str, Any] = json.loads(sys.stdin.readline())
    watch_parent(send_stop_signal)  # the server ends by itself, and long before that exit
    provider = said["oidc"] and Path(said["oidc"])
    reached = parse_access(
        said["auth"],
        said["port"],
        url=said["url"],
        trusted_proxies=said["behind"],
        provider=provider,
        tagger_urls=said["tagger_urls"],
    )
    try:
        serve(Path(said["project"]), replace(reached, home_url=said["home"]), browser=False, json_log=said["json_log"])
    except AnnotatorError as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()

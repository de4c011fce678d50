"""One project's server, started by children.py: it ends when its input does, so it never outlives the start page."""

import json
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.store.disk.private import files_for_owner_only
from annotator.ui.access.serving_modes import access
from annotator.ui.server import serve


def main() -> None:
    """Serve the project that the first line of the input names: a JSON object as children.py writes it."""
    files_for_owner_only()
    said: dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    provider = said["oidc"] and Path(said["oidc"])
    reached = access(said["auth"], said["port"], url=said["url"], behind=said["behind"], provider=provider)
    try:
        serve(Path(said["project"]), replace(reached, home=said["home"]), browser=False, json_log=said["json_log"])
    except AnnotatorError as error:
        sys.exit(f"Error: {error}")


def _end_with_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()

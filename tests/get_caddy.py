"""The reverse proxy that tests put in front of the app: the Caddy that is there, or else the distribution's package.

Run by `make test`, and by the tests themselves for whoever starts pytest alone.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from get_chromium import package

from annotator.errors import AnnotatorError


def get_caddy() -> str:
    """The path of a Caddy. Raises AnnotatorError, saying what was tried, where there is none and none can be got."""
    tried = "" if shutil.which("caddy") else package("caddy")
    if path := shutil.which("caddy"):
        return path
    raise AnnotatorError(f"There is no caddy, which the tests of the login need. Tried to get it, in vain:\n{tried}")


@contextmanager
def proxy(config: Path) -> Iterator[subprocess.Popen]:
    """Caddy with this configuration, for as long as the block lasts; what it keeps and logs lies beside the file."""
    folder = config.parent
    own = {"XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config"), "HOME": str(folder)}
    with (folder / "caddy.log").open("wb") as log:
        command = [get_caddy(), "run", "--config", str(config)]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | own)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(120)


if __name__ == "__main__":
    try:
        print("Reverse proxy for the tests:", get_caddy())
    except AnnotatorError as error:
        sys.exit(f"Error: {error}")

"""The reverse proxy that tests put in front of the app: the Caddy that is there, or else the distribution's package.

Run by `make test`, and by the tests themselves for whoever starts pytest alone.
"""

import shutil
import sys

from get_chromium import package

from annotator.errors import AnnotatorError


def get_caddy() -> str:
    """The path of a Caddy. Raises AnnotatorError, saying what was tried, where there is none and none can be got."""
    tried = "" if shutil.which("caddy") else package("caddy")
    if path := shutil.which("caddy"):
        return path
    raise AnnotatorError(f"There is no caddy, which the tests of the login need. Tried to get it, in vain:\n{tried}")


if __name__ == "__main__":
    try:
        print("Reverse proxy for the tests:", get_caddy())
    except AnnotatorError as error:
        sys.exit(f"Error: {error}")

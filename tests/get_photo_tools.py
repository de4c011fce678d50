"""exiftool and exiv2, which tests read and write keywords of photos with: those that are there, or the distribution's.

Run by `make test-readers`, and by the tests themselves for whoever starts pytest alone.
"""

import shutil
import sys

from get_chromium import package

from annotator.errors import AnnotatorError

PACKAGES = {"exiftool": "libimage-exiftool-perl", "exiv2": "exiv2"}


def get_photo_tool(name: str) -> str:
    """The path of a tool. Raises AnnotatorError, saying what was tried, where there is none and none can be got."""
    tried = "" if shutil.which(name) else package(PACKAGES[name])
    if path := shutil.which(name):
        return path
    raise AnnotatorError(f"There is no {name}, which the tests of keywords need. Tried to get it, in vain:\n{tried}")


if __name__ == "__main__":
    try:
        print("Tools for photos:", *map(get_photo_tool, PACKAGES))
    except AnnotatorError as error:
        sys.exit(f"Error: {error}")

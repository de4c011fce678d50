"""The components' script files, read once, and which files a script imports.

A browser finds out what a module imports when it has come: five round trips for a page of thirty files. A page that
names them all at its start needs one (components/__init__.py).
"""

import posixpath
import re
from functools import cache
from pathlib import Path

COMPONENTS = Path(__file__).parent.parent / "components"
# `import "./a.js";`, `export * from "./a.js";`, or the last line of a long one: `} from "./a.js";`
_IMPORT = re.compile(r'^(?:import|export|\})[^"\n]*"(\.[^"\n]+)";', re.MULTILINE)


@cache
def scripts() -> dict[str, bytes]:
    """Return the contents of all script files by their path in the components' folder."""
    return {file.relative_to(COMPONENTS).as_posix(): file.read_bytes() for file in COMPONENTS.glob("*/*.js")}


def imported_by(name: str) -> list[str]:
    """Return the paths of all scripts that a script imports, directly or through others, the nearest first."""
    names = [name]
    for importer in names:  # grows meanwhile
        for path in _IMPORT.findall(scripts()[importer].decode()):
            imported = posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))
            if imported not in names:
                names.append(imported)
    return names[1:]

"""The components' scripts: each is sent as one module, together with all that it imports.

A page has some forty files. Each as a request of its own takes the server several milliseconds, and a browser learns of
a module's imports only when it has come. So imports become lookups in a table: a file is a function here that returns
what it exports.
"""

import gzip
import hashlib
import posixpath
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

COMPONENTS = Path(__file__).parent.parent / "components"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"\n]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (default )?((?:async )?function|class|const|let) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class Bundle:
    """A module in which all that it imports is contained."""

    text: str

    @cached_property
    def packed(self) -> bytes:
        """Return it compressed by gzip, which takes longer than all else that a request for it costs."""
        return gzip.compress(self.text.encode(), mtime=0)

    @cached_property
    def version(self) -> str:
        """Return a name of this content, for its address: browsers keep what they have under that."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


@cache
def bundle(name: str) -> Bundle | None:
    """Return the module of a script file, None where there is no such file.

    Args:
        name: The path of the file in the components' folder, as "annotate/annotate.js".

    Raises:
        ValueError: A file imports or exports in a way that is not known here, or imports itself through others.
    """
    if name not in _texts():
        return None
    files: dict[str, str] = {}
    _add(name, files, ())
    _, exported = _taken_apart(name)
    named = [other for other in exported if other != "default"]
    ends = [f"export const {{ {', '.join(named)} }} = modules[{name!r}];"] if named else []
    if "default" in exported:
        ends.append(f"export default modules[{name!r}].default;")
    return Bundle("\n".join(["const modules = {};", *files.values(), *ends, ""]))


def address_of(name: str) -> str:
    """Return the end of a script's address, which changes with its content."""
    script = bundle(name)
    if script is None:
        raise ValueError(f"There is no script {name}.")
    return f"{name}?v={script.version}"


@cache
def _texts() -> dict[str, str]:
    """Return all script files by their path in the components' folder."""
    files = COMPONENTS.glob("*/*.js")
    return {file.relative_to(COMPONENTS).as_posix(): file.read_text(encoding="utf-8") for file in files}


def _add(name: str, files: dict[str, str], importers: tuple[str, ...]) -> None:
    """Add a file to `files`, after those that it imports."""
    if name in importers:
        raise ValueError(f"Scripts import each other: {' -> '.join((*importers, name))}")
    if name in files:
        return
    for _, path in _IMPORT.findall(_texts()[name]):
        _add(_resolved(name, path), files, (*importers, name))
    files[name], _ = _taken_apart(name)


def _taken_apart(name: str) -> tuple[str, dict[str, str]]:
    """Return a file as a function in the table of modules, and what it exports: the name outside -> that inside."""
    exported: dict[str, str] = {}

    def imports(match: re.Match) -> str:
        names = re.sub(r"(\w+) as (\w+)", r"\1: \2", match[1])
        return f"const {{{names}}} = modules[{_resolved(name, match[2])!r}];"

    def exports(match: re.Match) -> str:
        exported["default" if match[1] else match[3]] = match[3]
        return f"{match[2]} {match[3]}"

    text = _EXPORT.sub(exports, _IMPORT.sub(imports, _texts()[name]))
    if other := _OTHER.search(text):
        raise ValueError(f"{name} imports or exports in a way that bundles do not know: {other[0]}")
    table = ", ".join(f"{outside}: {inside}" for outside, inside in exported.items())
    return f"// {name}\nmodules[{name!r}] = (() => {{\n{text}\nreturn {{ {table} }};\n}})();", exported


def _resolved(importer: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))

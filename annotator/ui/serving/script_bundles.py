"""The components' scripts, each bundled with its imports to save some forty requests.

Files become functions in a table, and imports become lookups in it.
"""

import gzip
import hashlib
import posixpath
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

COMPONENTS_FOLDER = Path(__file__).parent.parent / "pages"
_IMPORT_PATTERN = re.compile(r'^import \{([^}]*)\} from "(\.[^"\n]+)";$', re.MULTILINE)
_EXPORT_PATTERN = re.compile(r"^export (default )?((?:async )?function|class|const|let) (\w+)", re.MULTILINE)
_UNSUPPORTED_PATTERN = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class Bundle:
    """A script module bundled with all modules that it imports."""

    text: str

    @cached_property
    def compressed_content(self) -> bytes:
        """Return the gzip bytes, cached because compressing is slow."""
        return gzip.compress(self.text.encode(), mtime=0)

    @cached_property
    def version(self) -> str:
        """Return a content hash for cacheable URLs."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


@cache
def build_bundle(name: str) -> Bundle | None:
    """Return the bundle of a script like "annotate/annotate.js", or None if missing.

    Raises:
        ValueError: An import or export form is unsupported, or imports are circular.
    """
    if name not in _load_script_texts():
        return None
    files: dict[str, str] = {}
    _add_script(name, files, ())
    _, exported = _convert_script(name)
    named = [other for other in exported if other != "default"]
    ends = [f"export const {{ {', '.join(named)} }} = modules[{name!r}];"] if named else []
    if "default" in exported:
        ends.append(f"export default modules[{name!r}].default;")
    return Bundle("\n".join(["const modules = {};", *files.values(), *ends, ""]))


def get_script_url(name: str) -> str:
    script = build_bundle(name)
    if script is None:
        raise ValueError(f"There is no script {name}.")
    return f"{name}?v={script.version}"


@cache
def _load_script_texts() -> dict[str, str]:
    files = COMPONENTS_FOLDER.glob("*/*.js")
    return {file.relative_to(COMPONENTS_FOLDER).as_posix(): file.read_text(encoding="utf-8") for file in files}


def _add_script(name: str, files: dict[str, str], importers: tuple[str, ...]) -> None:
    """Add a script, after the scripts it imports, to `files`."""
    if name in importers:
        raise ValueError(f"Scripts import each other: {' -> '.join((*importers, name))}")
    if name in files:
        return
    for _, path in _IMPORT_PATTERN.findall(_load_script_texts()[name]):
        _add_script(_resolve_import(name, path), files, (*importers, name))
    files[name], _ = _convert_script(name)


def _convert_script(name: str) -> tuple[str, dict[str, str]]:
    """Return a file as a function, with its exports."""
    exported: dict[str, str] = {}

    def imports(match: re.Match) -> str:
        names = re.sub(r"(\w+) as (\w+)", r"\1: \2", match[1])
        return f"const {{{names}}} = modules[{_resolve_import(name, match[2])!r}];"

    def exports(match: re.Match) -> str:
        exported["default" if match[1] else match[3]] = match[3]
        return f"{match[2]} {match[3]}"

    text = _EXPORT_PATTERN.sub(exports, _IMPORT_PATTERN.sub(imports, _load_script_texts()[name]))
    if other := _UNSUPPORTED_PATTERN.search(text):
        raise ValueError(f"{name} imports or exports in a way that bundles do not know: {other[0]}")
    table = ", ".join(f"{outside}: {inside}" for outside, inside in exported.items())
    return f"// {name}\nmodules[{name!r}] = (() => {{\n{text}\nreturn {{ {table} }};\n}})();", exported


def _resolve_import(importer: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))

"""A list of paths: one a line (.txt, .lst), or a .csv or .tsv of one column. The images are read in place, not copied.

The folder of all listed files is their common parent; if only / is common to them, each disk or tree gets a folder of
its own. Relative paths are relative to the list. Absolute paths are allowed here, because a person names files of
their own machine; a file inside a data set may not name them. A list given on a page may not name hidden files.
"""

import os
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_lines
from annotator.exchange.sources.source import FetchedFiles, Source
from annotator.humanize import format_count
from annotator.progress_callbacks import StepCallback
from annotator.store.pictures.files import escape_path
from annotator.store.pictures.picture_kinds import get_advice, looks_like_image

HEADER_WORDS = ("path", "paths", "file", "file_name", "filename", "filepath", "image", "images", "image_path")
LIST_SUFFIXES = (".txt", ".lst", ".csv", ".tsv")
FIRST_READ_BYTES = 8192


def recognize(path: Path) -> bool:
    """Return whether a text file has, in its first line after any header, only the path of an image."""
    try:
        if path.suffix.lower() not in LIST_SUFFIXES or not path.is_file():
            return False
        with path.open("rb") as file:
            text = file.read(FIRST_READ_BYTES).decode(errors="surrogateescape")
    except OSError:
        return False
    first = [_unquote(line) for line in text.lstrip("\ufeff").splitlines() if line.strip()][:2]
    if first and first[0].lower() in HEADER_WORDS:
        first = first[1:]
    separators = {".csv": ",;\t", ".tsv": "\t"}.get(path.suffix.lower(), "\t")
    return bool(first) and looks_like_image(first[0]) and not set(separators) & set(first[0])


def fetch_paths(path: Path, project: Path, progress: StepCallback | None, may_be_hidden: bool = True) -> FetchedFiles:
    """Return the folders and the listed paths in each.

    Args:
        path: The path of the list, one image path a line.
        project: The project folder.
        progress: Called with (state, lines read, 0) after every 1,000 lines; None: not called.
        may_be_hidden: False: a hidden file, or one in a hidden folder, is refused, also behind a link.

    Raises:
        AnnotatorError: Paths are not image files; lists all.
    """
    source = path.resolve()
    problems = Problems()
    found: dict[str, None] = {}
    twice = 0
    for number, line in enumerate(read_lines(source), start=1):
        text = _unquote(line.lstrip("\ufeff"))
        if not text or (number == 1 and text.lower() in HEADER_WORDS):
            continue
        problem, real = _check_path(source.parent, text)
        if (
            not problem
            and not may_be_hidden
            and (is_hidden_path(source.parent / text) or is_hidden_path(Path(real).resolve()))
        ):
            problem = "is hidden, or lies in a hidden folder; pages do not read those"
        if problem:
            problems.add(f"line {number}: {text!a} {problem}")
        twice += real in found
        found[real] = None
        if progress and number % 1000 == 0:
            progress("Reading the list", number, 0)
    if problems.count:
        raise problems.error(f"{source} cannot be imported, and nothing of it was registered:")
    if not found:
        raise AnnotatorError(f"{source} names no file.")
    said = [f"{format_count(len(found), 'image')} of the list stay where they lie."]
    if twice:
        said.append(f"{format_count(twice, 'path')} of the list named the same file again.")
    return FetchedFiles([(folder, paths) for folder, paths in _group_by_folder(list(found))], (), said)


def is_hidden_path(path: Path) -> bool:
    """Return whether a path names a hidden file, or one in a hidden folder, where programs keep keys and settings."""
    return any(part.startswith(".") and part not in (".", "..") for part in path.parts)


def _unquote(line: str) -> str:
    line = line.strip()
    return line[1:-1].replace('""', '"') if len(line) > 1 and line[0] == line[-1] == '"' else line


def _check_path(folder: Path, text: str) -> tuple[str, str]:
    """Return why a path cannot be used ("" if it can), and the path with links in its folders resolved."""
    if "\0" in text or len(text) > 4096:
        return "is no path", text
    path = folder / text
    try:
        real = os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118  a million paths
        if not looks_like_image(text):
            return get_advice(text) or "does not end as an image file does", real
        return ("" if path.is_file() else "is no file; is the path relative to the list?"), real
    except OSError as error:
        return f"cannot be looked at ({error.strerror})", text


def _group_by_folder(paths: list[str]) -> list[tuple[Path, list[str]]]:
    """Return (folder, paths in it) pairs: one common folder, or several if only / is common to all paths."""
    common = Path(os.path.commonpath([os.path.dirname(path) for path in paths]))  # noqa: PTH120
    if common != Path(common.anchor):
        return [(common, sorted(escape_path(os.path.relpath(path, common)) for path in paths))]
    groups: dict[str, list[str]] = {}
    for path in paths:
        parts = Path(path).parts
        groups.setdefault(parts[1] if len(parts) > 2 else "", []).append(path)
    if "" in groups:
        raise AnnotatorError(f"{groups[''][0]} lies in {common} itself; images are registered with a folder below it.")
    return [pair for group in groups.values() for pair in _group_by_folder(group)]


PATHS = Source("paths", "a .txt or .csv that lists the paths of images", recognize, fetch_paths)

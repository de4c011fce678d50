"""Lists of image paths, one per line or in a one-column table, read in place.

Files are registered below common parents. Relative paths start at the list. Absolute ones are allowed on this machine
but not in data sets. Lists from pages may not name hidden files.
"""

import os
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_beginning, read_lines
from annotator.exchange.sources.source import FetchedFiles, Source
from annotator.humanize import format_count
from annotator.progress_callbacks import StepCallback
from annotator.store.pictures.files import escape_path
from annotator.store.pictures.picture_kinds import get_advice, looks_like_image

HEADER_WORDS = ("path", "paths", "file", "file_name", "filename", "filepath", "image", "images", "image_path")
LIST_SUFFIXES = (".txt", ".lst", ".csv", ".tsv")
FIRST_READ_BYTES = 8192


def recognize(path: Path) -> bool:
    """Return whether a file starts with a line that is an image path."""
    try:
        if path.suffix.lower() not in LIST_SUFFIXES or not path.is_file():
            return False
    except OSError:
        return False
    first = [_unquote(line) for line in read_beginning(path, FIRST_READ_BYTES)[0].splitlines() if line.strip()][:2]
    if first and first[0].lower() in HEADER_WORDS:
        first = first[1:]
    separators = {".csv": ",;\t", ".tsv": "\t"}.get(path.suffix.lower(), "\t")
    return bool(first) and looks_like_image(first[0]) and not set(separators) & set(first[0])


def fetch_paths(path: Path, project: Path, progress: StepCallback | None, may_be_hidden: bool = True) -> FetchedFiles:
    """Return the folders with their listed paths. Raises AnnotatorError that lists all invalid paths.

    If not `may_be_hidden`, hidden files and folders are rejected, also behind links.
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
    """Return whether a part of a path is hidden, where keys and settings are often kept."""
    return any(part.startswith(".") and part not in (".", "..") for part in path.parts)


def _unquote(line: str) -> str:
    line = line.strip()
    return line[1:-1].replace('""', '"') if len(line) > 1 and line[0] == line[-1] == '"' else line


def _check_path(folder: Path, text: str) -> tuple[str, str]:
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

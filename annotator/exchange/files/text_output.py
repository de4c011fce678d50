"""Text files that a command writes where a person says: complete, or not there."""

import glob
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from annotator.errors import AnnotatorError
from annotator.store.database.arrays import remove_unfinished_files, replace_file_atomically


@contextmanager
def open_text_output(path: Path, *, overwrite: bool = False) -> Generator[TextIO]:
    r"""Open a UTF-8 text file for writing, which gets its name when the block succeeds.

    What UTF-8 cannot hold is written as \udce9, so that no name ends a command in the middle of its output.

    Args:
        path: The file, a link to one, or with `overwrite` a device or pipe, which is written directly.

    Raises:
        AnnotatorError: The file exists, or its folder does not.
        DiskFull: It could not be written.
    """
    if os.path.lexists(path) and not overwrite:
        raise AnnotatorError(f"{path} is there already. Name a new file.")
    if path.is_dir() or not path.parent.is_dir():
        problem = f"{path} is a folder" if path.is_dir() else f"There is no folder {path.parent}"
        raise AnnotatorError(f"{problem}, so {path.name} was not written. Name a file in an existing folder.")
    if path.exists() and not path.is_file():
        with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            yield file
        return
    target = path.resolve()
    remove_unfinished_files(target.parent, f".{glob.escape(target.name)}.*")  # left by killed commands
    with (
        replace_file_atomically(target) as part,
        part.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file,
    ):
        yield file

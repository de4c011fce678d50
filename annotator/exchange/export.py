"""Writing a data set and its data card: all files or none. The page and the command line both come here."""

import glob
import io
import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from annotator.errors import AnnotatorError, did_you_mean, several
from annotator.exchange import data_card, destination
from annotator.exchange.data_card import Quality
from annotator.exchange.data_set import DataSet, data_set, problems_of
from annotator.exchange.formats import EXPORTS
from annotator.exchange.formats.table import File, Table
from annotator.exchange.thresholds import Limits
from annotator.store.arrays import replacing, sweep
from annotator.store.database import Database
from annotator.store.files import content_of

ABANDONED_AFTER = 3600.0  # seconds


@dataclass(frozen=True)
class Prepared:
    """An export that is read and can be written. card: the data card."""

    data: DataSet
    target: Path
    kind: str
    card: dict[str, Any]


def prepare(
    db: Database,
    target: Path,
    kind: str,
    unknown: str = "keep",
    limits: Limits | None = None,
    *,
    raw: bool = False,
    overwrite: bool = False,
) -> Prepared:
    """Check whether an export can be written, and read what it holds; nothing is written.

    overwrite    also replace files that no export has written

    Raises AnnotatorError for an unknown format, for all that is wrong with the target at once, and as `data_set` does.
    """
    if kind not in EXPORTS:
        raise AnnotatorError(f"No format is called {kind!r}. {did_you_mean(kind, EXPORTS)}")
    paths = [*(file.path(target) for file in EXPORTS[kind]), *data_card.paths(target)]
    problems = problems_of(unknown, limits or Limits()) + destination.problems(paths, overwrite)
    if problems:
        raise several("Nothing was exported:", problems)
    data, quality = read(db, unknown, limits, raw)
    card = data_card.card(data, quality, [file.path(target).name for file in EXPORTS[kind]])
    return Prepared(data, target, kind, card)


def read(
    db: Database, unknown: str = "keep", limits: Limits | None = None, raw: bool = False
) -> tuple[DataSet, Quality]:
    """The data set, and what its card says besides, as of one moment. Arguments and errors as of `data_set`."""
    with db.reading():
        return data_set(db, unknown, limits, raw), data_card.quality(db)


def write(export: Prepared) -> list[Path]:
    """Write the data set and its data card beside it: all files or none; returns them. Raises DiskFull."""
    target, table = export.target, export.data.table
    sweep(target.parent, ABANDONED_AFTER, f".{glob.escape(target.stem)}.*")  # left by killed exports
    written: dict[Path, str] = {}
    # The stack renames in reverse order, the table last: beside a new table all its files are new.
    with ExitStack() as stack:

        def put(path: Path, write_to: Callable[[TextIO], object]) -> None:
            part = stack.enter_context(replacing(path))
            with part.open("x", newline="", encoding="utf-8") as file:
                write_to(file)
            written[path] = content_of(part)

        for part_of_format in EXPORTS[export.kind]:
            put(part_of_format.path(target), partial(part_of_format.write, table))
        card_md, card_json = data_card.paths(target)
        put(card_md, lambda file: file.write(data_card.markdown(export.card)))
        sealed = destination.sealed(export.card, card_json, {path.name: sha256 for path, sha256 in written.items()})
        put(card_json, lambda file: file.write(json.dumps(sealed, indent=2, ensure_ascii=False) + "\n"))
    return list(written)


def export(
    db: Database, target: Path, kind: str, unknown: str = "keep", limits: Limits | None = None, **options: bool
) -> tuple[DataSet, list[Path]]:
    """`prepare` and `write`; returns the data set and the paths written."""
    prepared = prepare(db, target, kind, unknown, limits, **options)
    return prepared.data, write(prepared)


def content(file: File, table: Table) -> bytes:
    """The bytes that `write` writes to this file, for a download."""
    text = io.StringIO(newline="")
    file.write(table, text)
    return text.getvalue().encode()

"""Naming an export, so that it can be compared later with other exports and with the current labels."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import DataSet, Progress, data_set
from annotator.store.database.database import Database
from annotator.store.labels import tagged_exports as tags
from annotator.store.labels.tagged_exports import TaggedCells


def write_cells(db: Database, data: DataSet, progress: Progress | None = None) -> Path:
    """Write the cells of a data set, within its transaction; return the new file, which the caller keeps or deletes."""
    done = 0
    with tags.new_cells(db, data.image_ids, data.view.classes) as (writer, path):
        for block in data.view.blocks():
            writer.add(block.values, block.states)
            done += len(block.images)
            if progress:
                progress(done, data.view.images)
    return path


@contextmanager
def cells_now(db: Database, choices: Choices, progress: Progress | None = None) -> Generator[TaggedCells]:
    """Yield the cells of an export with these choices as of now; their file is deleted afterwards.

    Args:
        db: The project's database.
        choices: What is exported.
        progress: Called with (images counted, images in all), then with (images written, images in all); an exception
            raised by it ends the work.
    """
    with data_set(db, choices, progress=progress) as data:
        path = write_cells(db, data, progress)
    try:
        yield tags.read_cells(path)
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def cells_of(db: Database, name: str) -> Generator[TaggedCells]:
    """Yield the cells of a tag. Raises AnnotatorError if the tag is unknown or its file is gone."""
    yield tags.read_cells(tags.path_of(db, tags.find_tag(db, name).id))

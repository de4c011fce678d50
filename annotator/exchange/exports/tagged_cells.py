"""Files that keep the labels of tagged exports (versions), for later comparisons."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import DataSet, open_data_set
from annotator.progress_callbacks import ProgressCallback
from annotator.store.database.database import Database
from annotator.store.labels import tagged_exports
from annotator.store.labels.tagged_exports import TaggedCells


def write_tag_cells(db: Database, data: DataSet, progress: ProgressCallback | None = None) -> Path:
    """Write the labels of a data set to a file for its tag, within the transaction, and return the path."""
    done = 0
    with tagged_exports.open_cell_writer(db, data.image_ids, data.view.classes) as (writer, path):
        for block in data.view.blocks():
            writer.add(block.values, block.states)
            done += len(block.images)
            if progress:
                progress(done, data.view.images)
    return path


@contextmanager
def open_current_cells(
    db: Database, choices: Choices, progress: ProgressCallback | None = None
) -> Generator[TaggedCells]:
    """Write the current labels with these choices to a temporary file, and yield them. `progress` counts up twice."""
    with open_data_set(db, choices, progress=progress) as data:
        path = write_tag_cells(db, data, progress)
    try:
        yield tagged_exports.read_cells(path)
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def open_tagged_cells(db: Database, name: str) -> Generator[TaggedCells]:
    """Yield the labels of a tagged export. Raises AnnotatorError if there is none."""
    yield tagged_exports.read_cells(tagged_exports.get_cells_path(db, tagged_exports.find_tag(db, name).id))

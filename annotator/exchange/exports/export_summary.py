"""Preview of an export: counts and first rows, without writing."""

import csv
from dataclasses import dataclass, replace
from itertools import islice

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.exports.option_types import Effect
from annotator.exchange.exports.tallies import Tallies
from annotator.exchange.exports.thresholds import Fill
from annotator.exchange.files.csv_cells import CsvField
from annotator.exchange.formats.csv_table import format_long_rows, format_wide_rows, select_columns
from annotator.exchange.formats.export_view import View
from annotator.progress_callbacks import ProgressCallback
from annotator.store.database.database import Database

PREVIEW_ROWS = 10  # images in the preview, and answers of the long form


@dataclass(frozen=True, eq=False)
class Summary:
    """Counts and first rows of an export, in constant memory."""

    images: int
    # view of the first PREVIEW_ROWS images
    head: View
    # counts of labels, without the lists of present classes per image
    tallies: Tallies
    fill: Fill | None
    sentences: list[str]
    splits: list[dict]


def drop_uncounted_choices(choices: Choices) -> Choices:
    """Reset the options that do not change the counts, so that choices with equal counts share one summary."""
    return choices.keep_effects(Effect.COUNTS)


def summarize_export(db: Database, choices: Choices, progress: ProgressCallback | None = None) -> Summary:
    with open_data_set(db, choices, progress=progress) as data:
        blocks = [block.head(PREVIEW_ROWS) for block in islice(data.view.blocks(), 1)]
        head = replace(data.view, images=len(blocks[0].images) if blocks else 0, blocks=lambda: iter(blocks))
        data.tallies.forget_positives()
        return Summary(data.view.images, head, data.tallies, data.fill, data.sentences, data.splits)


def format_preview_rows(summary: Summary, choices: Choices) -> list[list[str]]:
    """Return the header and first rows of the CSV. Raises AnnotatorError for unknown columns."""
    view = replace(summary.head, columns=choices.columns, raw=choices.raw)
    if choices.pseudonyms:
        people = [f"annotator {place}" for place in range(1, len(view.annotators))]
        view = replace(view, annotators=("", *people))
    columns = select_columns(view)
    rows = [[name for _, name in columns]]
    for block in view.blocks():
        lines = (format_long_rows if choices.columns.long else format_wide_rows)(
            view, block, [name for name, _ in columns], CsvField(choices.raw)
        )
        rows += islice(csv.reader(lines, strict=True), PREVIEW_ROWS)
    return rows

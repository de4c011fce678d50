"""Scores in pandas tables, converted to blocks for storage."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.predictions.score_files import CLASS_COLUMNS, ROWS_PER_BLOCK, SCORE_COLUMNS, ScoreBlock

if TYPE_CHECKING:
    import pandas as pd


def read_score_frame(table: "pd.DataFrame") -> Iterator[ScoreBlock]:
    """Yield the scores of a table as blocks. Raises AnnotatorError for invalid tables.

    Long tables have columns image, class, and score or probability. Wide ones have an image index and a column
    per class.
    """
    if "image" not in table.columns:
        return _read_wide_table(table)
    class_column, score_column = (_find_column(table, names) for names in (CLASS_COLUMNS, SCORE_COLUMNS))
    if class_column is None or score_column is None:
        raise AnnotatorError(
            f"A table of scores has the columns image, class and one of {', '.join(SCORE_COLUMNS)}; or its index names "
            "the images and every column is a class."
        )
    return _read_long_table(table, class_column, score_column)


def _read_long_table(table: "pd.DataFrame", class_column: str, score_column: str) -> Iterator[ScoreBlock]:
    import pandas as pd

    image_codes, images = pd.factorize(table["image"])
    class_codes, names = pd.factorize(table[class_column])
    if (image_codes < 0).any() or (class_codes < 0).any():
        raise AnnotatorError("The table has rows without an image or without a class.")
    twice = table.duplicated(["image", class_column])
    if twice.any():
        first = table[twice].iloc[0]
        raise AnnotatorError(f"The table scores {first[class_column]!r} on {first['image']!r} twice.")
    scores = table[score_column].to_numpy(np.float64, na_value=np.nan)
    order = np.argsort(image_codes, kind="stable")
    bounds = np.searchsorted(image_codes[order], np.arange(0, len(images) + ROWS_PER_BLOCK, ROWS_PER_BLOCK))
    for block, (first, end) in enumerate(pairwise(bounds.tolist())):
        some, start = order[first:end], block * ROWS_PER_BLOCK
        values = np.full((min(ROWS_PER_BLOCK, len(images) - start), len(names)), np.nan)
        values[image_codes[some] - start, class_codes[some]] = scores[some]
        yield _make_block(images[start : start + ROWS_PER_BLOCK], start, names, values)


def _read_wide_table(table: "pd.DataFrame") -> Iterator[ScoreBlock]:
    for start in range(0, len(table), ROWS_PER_BLOCK):
        part = table.iloc[start : start + ROWS_PER_BLOCK]
        yield _make_block(part.index, start, table.columns, part.to_numpy(np.float64, na_value=np.nan))


def _make_block(images: Any, start: int, names: Any, values: np.ndarray) -> ScoreBlock:
    texts = [str(image) for image in images]
    return ScoreBlock(texts, range(start + 1, start + 1 + len(texts)), [str(name) for name in names], values)


def _find_column(table: "pd.DataFrame", names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in table.columns), None)

"""Object boxes of an image folder, read from CSV and checked for valid names."""

import csv
from collections import defaultdict
from collections.abc import Sequence
from math import inf
from pathlib import Path

from annotator.errors import AnnotatorError, combine_problems

BOX_COLUMNS = ("image", "class", "left", "top", "right", "bottom")
Box = tuple[float, float, float, float]  # left, top, right, bottom, in pixels


def read_boxes(path: Path, images: Sequence[str], classes: Sequence[str]) -> dict[tuple[int, int], list[Box]]:
    """Read object boxes from a CSV `image,class,left,top,right,bottom`, by (row, column) in `images` and `classes`.

    Raises AnnotatorError that lists all invalid lines.
    """
    rows = {name: row for row, name in enumerate(images)}
    columns = {name: column for column, name in enumerate(classes)}
    placed: dict[tuple[int, int], list[Box]] = defaultdict(list)
    problems = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            if missing := [name for name in BOX_COLUMNS if name not in (table.fieldnames or ())]:
                raise AnnotatorError(
                    f"{path} has no column {', '.join(missing)}; it must have {','.join(BOX_COLUMNS)}."
                )
            for line in table:
                try:
                    left, top, right, bottom = (float(line[name]) for name in BOX_COLUMNS[2:])
                    if not (-inf < left < right < inf and -inf < top < bottom < inf):
                        raise ValueError
                    placed[rows[line["image"]], columns[line["class"]]].append((left, top, right, bottom))
                except KeyError as error:
                    problems.append(f"line {table.line_num}: the images and the truth know no {error.args[0]!r}")
                except (ValueError, TypeError):
                    problems.append(f"line {table.line_num}: no box with left < right and top < bottom")
    except (OSError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"The boxes {path} cannot be read: {error}.") from error
    if problems:
        raise combine_problems(f"The boxes {path} cannot be used:", problems)
    return placed

"""Answers from a user's program, stored all or nothing in one step.

Their source is `script`: a program chose the cells, so they are not a random sample.
"""

import uuid
from collections.abc import Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Any

from annotator.errors import AnnotatorError, combine_problems, did_you_mean
from annotator.records import STATES, Batch
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.images.name_matching import LOOSEST_UNSEEN_KIND, RIVAL_REASON, find_images_by_name
from annotator.store.labels import decisions

if TYPE_CHECKING:
    import pandas as pd

CLEAR_WORD = "clear"
ANSWER_WORDS = (*STATES, CLEAR_WORD)
NOTHING_STORED_MESSAGE = "Nothing was stored:"
TABLE_COLUMNS = ("image", "class", "state")
MAX_NAMES_LOOKED_UP = 20  # of so many unknown names is looked up which ones were meant


def store_decisions(
    db: Database, image: "str | int | Iterable[str | int] | pd.DataFrame", class_: Any, state: Any, annotator: str
) -> int:
    """Store answers in one step and return their number. Raises AnnotatorError that lists all problems.

    Args:
        image: Names or ids, or a table with columns image, class, state.
        class_: Names or ids, one for all images or per image.
        state: "present", "absent", "unsure" or "clear", likewise.
    """
    columns = (
        _columns_from_table(image, class_, state)
        if hasattr(image, "columns")
        else _columns_from_values(image, class_, state)
    )
    problems: list[str] = []
    image_ids = _find_image_ids(db, columns[0], problems)
    class_ids = _find_class_ids(db, columns[1], problems)
    cells: list[tuple[int, int, int | None, float | None]] = []
    for image_id, class_id, word in zip(image_ids, class_ids, columns[2], strict=True):
        if not isinstance(word, str) or word not in ANSWER_WORDS:
            problems.append(f"{word!r} is no state. {did_you_mean(str(word), ANSWER_WORDS)}")
        elif image_id is not None and class_id is not None:
            cells.append((image_id, class_id, STATES.get(word), None))
    if problems:
        raise combine_problems(NOTHING_STORED_MESSAGE, list(dict.fromkeys(problems)))
    if not cells:
        return 0
    saved = decisions.save(db, [Batch(str(uuid.uuid4()), annotator, "script", cells)])
    if saved.refused:
        raise combine_problems(NOTHING_STORED_MESSAGE, list(saved.refused.values()))
    return len(cells)


def _columns_from_table(table: Any, class_: Any, state: Any) -> list[list[Any]]:
    if class_ is not None or state is not None:
        raise AnnotatorError("A table has the classes and states in its columns: give it alone.")
    missing = [name for name in TABLE_COLUMNS if name not in table.columns]
    if missing:
        raise AnnotatorError(f"The table has no column {', '.join(missing)}; it needs {', '.join(TABLE_COLUMNS)}.")
    return [table[name].tolist() for name in TABLE_COLUMNS]


def _columns_from_values(*values: Any) -> list[list[Any]]:
    if any(value is None for value in values):
        raise AnnotatorError("An answer needs an image, a class and a state, or a table with these columns.")
    lists = [None if isinstance(value, str) or not isinstance(value, Iterable) else list(value) for value in values]
    lengths = {len(list_) for list_ in lists if list_ is not None} or {1}
    if len(lengths) > 1:
        raise AnnotatorError(f"Lists of {' and '.join(map(str, sorted(lengths)))} entries cannot be joined to answers.")
    (length,) = lengths
    return [list(repeat(value, length)) if list_ is None else list_ for value, list_ in zip(values, lists, strict=True)]


def _find_image_ids(db: Database, given: list[Any], problems: list[str]) -> list[int | None]:
    names = {name for name in given if isinstance(name, str)}
    found = find_images_by_name(db, names, LOOSEST_UNSEEN_KIND)
    id_of: dict[Any, int] = {name: one.image_id for name, one in found.items() if one.image_id}
    rivals = [name for name, one in sorted(found.items()) if one.reason.startswith(RIVAL_REASON)]
    problems += [f"{name!r}: {found[name].reason}." for name in rivals]
    unknown = sorted(names - id_of.keys() - {*rivals})
    for name in unknown[:MAX_NAMES_LOOKED_UP]:
        try:
            id_of[name] = images.find_image(db, name).id
        except AnnotatorError as error:
            problems.append(str(error))
    if (more := len(unknown) - MAX_NAMES_LOOKED_UP) > 0:
        problems.append(f"{more:,} more images are not in the project.")
    numbers = {int(number) for number in given if _is_number(number)}
    known = numbers & _find_known_ids(db, numbers)
    problems += [f"There is no image {number} in this project." for number in sorted(numbers - known)]
    problems += [f"{value!r} is no name and no id of an image." for value in given if not _is_name(value)]
    id_of |= {number: number for number in known}
    return [id_of.get(value) for value in given]


def _find_known_ids(db: Database, numbers: set[int]) -> set[int]:
    some = sorted(numbers)
    return {
        id_ for start in range(0, len(some), 10_000) for id_ in images.load_images(db, some[start : start + 10_000])
    }


def _find_class_ids(db: Database, given: list[Any], problems: list[str]) -> list[int | None]:
    by_id = {class_.id for class_ in classes.load_active_classes(db)}
    id_of: dict[Any, int] = {}
    for value in dict.fromkeys(given):
        if isinstance(value, str):
            try:
                id_of[value] = classes.find_class(db, value).id
            except AnnotatorError as error:
                problems.append(str(error))
        elif _is_number(value) and int(value) in by_id:
            id_of[value] = int(value)
        else:
            problems.append(f"There is no class {value!r} in this project.")
    return [id_of.get(value) for value in given]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)

"""Labels in a CSV or TSV, in any of four shapes: read row by row, however long the file is.

Format: RFC 4180, UTF-8 or UTF-16, with "," ";" or a tab between columns. The first row names the columns.

    image,class,state      one row an answer: present, absent or unsure (or 1, 0); without `state` each row is present.
                           Columns source, annotator, decided_at say who gave it and when
    image,labels           the present classes, with "|" between
    image,fox,heron,...    one column a class: 1 present, 0 absent; empty or -1 unknown; true and false as well. Columns
                           with another value among their first ones are facts of the image (split, location, ...)
    image,kind,note,...    flags and comments; facts of images, whose kind is attribute:NAME

A row of the third shape without an unknown cell is exhaustive.
"""

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.lines import csv_rows, first_line
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.tables import refuse_many_columns
from annotator.exchange.files.text_cells import unescaped
from annotator.exchange.formats.contents import Contents, Given, Item, Remark
from annotator.exchange.formats.shared.card_beside import columns_of_classes
from annotator.exchange.formats.shared.times import when
from annotator.records import ABSENT, PRESENT, STATES, UNSURE

DELIMITERS = ",;\t"
IMAGE = ("image", "filename", "file_name", "file", "path", "image_path", "filepath")
CLASS = ("class", "label", "class_name", "category")
STATE = ("state", "value")
FACTS = ("split", "subset", "fold", "group", "location", "license", "licence", "width", "height", "missing")
"""Columns that are never classes."""
WRITTEN = "file"
"""The column with what an export calls the file of an image whose name it has in `image`."""
FACT = "attribute:"
"""Begins the kind of a note that is a fact of the image."""
SAMPLE = 200  # rows that decide which columns are classes

_VALUES: dict[str, int | None] = {"1": PRESENT, "1.0": PRESENT, "true": PRESENT, "0": ABSENT, "0.0": ABSENT}
_VALUES |= {"false": ABSENT, "": None, "-1": None, "-1.0": None, "nan": None, **STATES}
_STATES: dict[str, int] = {**STATES, "1": PRESENT, "0": ABSENT, "true": PRESENT, "false": ABSENT}


def header_of(path: Path) -> tuple[list[str], str]:
    """Return the names of the columns, in small letters and unescaped, and the delimiter; [] if it is not a table."""
    line = first_line(path)
    best: tuple[list[str], str] = [], ","
    for delimiter in DELIMITERS:
        try:
            cells = next(csv.reader(io.StringIO(line), delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(cells) > len(best[0]):
            best = [unescaped(cell.strip()).lower() for cell in cells], delimiter
    return best


def is_of_package(header: Collection[str]) -> bool:
    """Return whether a header is that of a Camtrap DP, whose tables are read together, or of Wildlife Insights."""
    if {"image_id", "deployment_id", "is_blank", "common_name"}.issubset(header):
        return True
    ids = {"deploymentid", "mediaid", "observationid"}
    others = {"filepath", "observationtype", "latitude"}
    return not ids.isdisjoint(header) and not others.isdisjoint(header)


def recognise(path: Path, delimiters: str) -> str | None:
    """Return why a file is such a table with one of these delimiters, or None."""
    if not path.is_file():
        return None
    header, delimiter = header_of(path)
    if is_of_package(header) or path.suffix.lower() == ".ddb":
        return None
    image = _column(header, IMAGE)
    if image is None or len(header) < 2 or delimiter not in delimiters:
        return None
    named = ", ".join(header[:4]) + (", ..." if len(header) > 4 else "")
    return f"a table with the columns {named}"


def read(path: Path, problems: Problems) -> Contents:
    """Return the labels of a table. Raises AnnotatorError for a file of another shape, and as `lines` does."""
    if not path.is_file():
        raise AnnotatorError(f"There is no file {path} (the label file). Is the path spelled right?")
    delimiter = header_of(path)[1]
    rows = csv_rows(path, problems, delimiter=delimiter)
    first = next(rows, None)
    if first is None:
        raise AnnotatorError(
            f"The label file {path} is empty; it needs a first line image,class,state or image,labels."
        )
    refuse_many_columns(path, len(first[1]))
    names = [unescaped(cell.strip()) for cell in first[1]]
    header = [name.lower() for name in names]
    image = _column(header, IMAGE)
    if twice := sorted(name for name, count in Counter(names).items() if name and count > 1):
        raise AnnotatorError(f"The label file {path} has two columns called {', '.join(map(repr, twice))}.")
    if image is not None and {"kind", "note"} <= set(header):
        return Contents([], _notes(rows, header, image, problems))
    head = list(islice(rows, SAMPLE))
    rest = chain(head, rows)
    ours = columns_of_classes(path)  # also if a class is called "class", "labels" or "width"
    if image is not None and ours and set(ours) <= set(names):
        return _wide(rest, head, names, names.index("image"), problems, set(ours))
    class_ = _column(header, CLASS)
    is_long = class_ is not None and (_column(header, STATE) is not None or not _is_wide(header, head, class_))
    if image is not None and class_ is not None and is_long:
        return Contents([], _long(rest, header, image, class_, problems))
    if image is not None and "labels" in header:
        return Contents([], _listed(rest, names, image, header.index("labels")))
    if image is None:
        raise AnnotatorError(
            f"The label file {path} begins with the columns {', '.join(names)}.\n"
            "    It needs image,class,state (present, absent or unsure), image,labels (present classes, '|' between), "
            "or image and one column a class (1, 0 or empty)."
        )
    return _wide(rest, head, names, image, problems)


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _is_wide(header: list[str], head: list[tuple[int, list[str]]], class_: int) -> bool:
    """Return whether a column called "label" holds values, not names of classes."""
    return len(header) > 2 and all(row[class_].strip().lower() in _VALUES for _, row in head)


def _long(
    rows: Iterator[tuple[int, list[str]]], header: list[str], image: int, class_: int, problems: Problems
) -> Iterator[Item]:
    """Yield the answers of a table with one row an answer.

    Successive rows of one image are one item; but a row with a class that occurs for the first time is an item of its
    own.
    """
    state = _column(header, STATE)
    original = "original_" if "original_source" in header else ""
    who = [[_column(header, [name]) for name in names] for names in _who_columns(original)]
    split, sha256, file = (_column(header, [name]) for name in ("split", "sha256", WRITTEN))
    file = None if file == image else file
    seen: set[str] = set()
    times: dict[str, float | None] = {}

    def given(line: int, row: list[str]) -> Given | None:
        word = "present" if state is None else row[state].strip().lower()
        if word not in _STATES:
            problems.add(f"line {line}: state {row[state or 0]!r}; it must be present, absent or unsure")
            return None
        facts = ["", "", ""]
        for columns in who:  # the columns of the origin come first, if they exist
            facts = ["" if column is None else row[column] for column in columns]
            if any(facts):
                break
        if facts[2] not in times:
            if len(times) >= 10_000:  # clearing all is cheaper than deleting the oldest key each time
                times.clear()
            try:
                times[facts[2]] = when(facts[2])
            except (ValueError, OverflowError):
                problems.add(f"line {line}: decided_at {facts[2]!r} is no time (ISO 8601)")
                times[facts[2]] = None
        name = unescaped(row[class_].strip())
        return Given(name, _STATES[word], unescaped(facts[1]), times.get(facts[2]), facts[0])

    def key(numbered: tuple[int, list[str]]) -> tuple[str, int]:
        line, row = numbered
        if row[class_] in seen:
            return row[image], 0
        seen.add(row[class_])
        return row[image], line

    for (name, _), group in groupby(rows, key):
        place, labels, first = 0, [], None
        for line, row in group:
            place, first = place or line, first or row
            if answer := given(line, row):
                labels.append(answer)
        assert first is not None  # a group has a row
        facts = {"split": first[split]} if split is not None and first[split] else {}
        content = first[sha256] if sha256 is not None else ""
        written = unescaped(first[file]) if file is not None else ""
        yield Item(unescaped(name), place, labels, attributes=facts, sha256=content, written=written)


def _who_columns(original: str) -> list[list[str]]:
    columns = [["source", "annotator", "decided_at"]]
    return [[original + name for name in columns[0]], *columns] if original else columns


def _listed(rows: Iterator[tuple[int, list[str]]], names: list[str], image: int, labels: int) -> Iterator[Item]:
    """Yield one item a row with the present classes, "|" between; other columns are facts of the image."""
    others = [column for column in range(len(names)) if column not in (image, labels)]
    for line, row in rows:
        words = [word.strip() for word in unescaped(row[labels].strip()).split("|")]
        yield Item(
            unescaped(row[image]),
            line,
            [Given(word, PRESENT) for word in dict.fromkeys(words) if word],
            **_facts(row, {names[column]: column for column in others}),
        )


def _facts(row: list[str], columns: Mapping[str, int]) -> dict:
    facts = {name: unescaped(row[column]) for name, column in columns.items() if row[column] and name}
    return {"sha256": facts.pop("sha256", ""), "attributes": facts}


def _wide(
    rows: Iterator[tuple[int, list[str]]],
    head: list[tuple[int, list[str]]],
    names: list[str],
    image: int,
    problems: Problems,
    ours: Collection[str] = (),
) -> Contents:
    """Return the labels of a table with one column a class. ours: the names of the classes, if they are known."""
    others = [column for column in range(len(names)) if column != image]
    classes = [
        column
        for column in others
        if (names[column] in ours if ours else _is_class(names[column], [row[column] for _, row in head]))
    ]
    are_classes = set(classes)
    facts = {names[column]: column for column in others if column not in are_classes}
    ignored = {"width", "height", "missing"}
    facts = {name: column for name, column in facts.items() if name.lower() not in ignored}
    said = ["1 is present, 0 is absent; empty and -1 are unknown"]
    if kept := [name for name in facts if name and name != "sha256"]:
        said.append(f"columns that are facts of images, not classes: {', '.join(kept)}")
    listed = [(names[column], "") for column in classes]
    return Contents(listed, _wide_items(rows, names, image, classes, facts, problems), said=said)


def _is_class(name: str, values: Sequence[str]) -> bool:
    """Return whether a column is one of a class, by its name and its first values."""
    return bool(name) and name.lower() not in (*FACTS, "sha256") and all(v.strip().lower() in _VALUES for v in values)


def _wide_items(
    rows: Iterator[tuple[int, list[str]]],
    names: list[str],
    image: int,
    classes: list[int],
    facts: dict[str, int],
    problems: Problems,
) -> Iterator[Item]:
    answers = {state: [Given(names[column], state) for column in classes] for state in (PRESENT, ABSENT, UNSURE)}
    is_rest = classes == list(range(image + 1, len(names)))  # the usual case: a slice of the row is enough
    for line, row in rows:
        cells = row[image + 1 :] if is_rest else [row[column] for column in classes]
        is_whole = cells.count("1") + cells.count("0") == len(cells) and bool(cells)
        labels: list[Given] = []
        if is_whole:
            labels = [given for cell, given in zip(cells, answers[PRESENT], strict=True) if cell == "1"]
        else:
            for place, cell in enumerate(cells):
                if cell == "":
                    continue
                word = cell.strip().lower()
                if word not in _VALUES:
                    problems.add(
                        f"line {line}: {names[classes[place]]!r} is {cell[:40]!r}; it must be 1, 0, -1 or empty"
                    )
                elif (state := _VALUES[word]) is not None:
                    labels.append(answers[state][place])
        yield Item(unescaped(row[image]), line, labels, exhaustive=is_whole, **_facts(row, facts))


def _notes(rows: Iterator[tuple[int, list[str]]], header: list[str], image: int, problems: Problems) -> Iterator[Item]:
    """Yield flags, comments and facts, in the form that exports write them."""
    kind, note = header.index("kind"), header.index("note")
    annotator, written = _column(header, ["annotator"]), _column(header, ["written_at"])
    file = _column(header, [WRITTEN])
    for line, row in rows:
        place = "" if file is None or file == image else unescaped(row[file])
        if (name := unescaped(row[kind])).startswith(FACT):
            facts = {name.removeprefix(FACT): unescaped(row[note])}
            yield Item(unescaped(row[image]), line, attributes=facts, written=place)
            continue
        try:
            at = None if written is None else when(row[written])
        except (ValueError, OverflowError):
            problems.add(f"line {line}: written_at {row[written or 0]!r} is no time (ISO 8601)")
            continue
        by = "" if annotator is None else unescaped(row[annotator])
        remark = Remark(row[kind], unescaped(row[note]), by, at)
        yield Item(unescaped(row[image]), line, remarks=[remark], written=place)

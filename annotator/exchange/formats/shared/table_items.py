"""A table of any file as items: its columns are decided from its first rows, and its rows are read one by one."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import NOTHING, Contents, Given, Item
from annotator.exchange.reading.columns import BOX, IMAGE
from annotator.exchange.reading.deciding import Deciding
from annotator.exchange.reading.reading import Reading, is_told_facts
from annotator.exchange.reading.sample import COUNTS_ONLY, Columns
from annotator.exchange.reading.words import EMPTY_WORDS, UNKNOWN_WORDS, Cell, number, plain, split
from annotator.records import ABSENT, PRESENT, UNSURE

SAMPLE = 1000  # rows that decide what the columns mean
MOST_KNOWN = 10_000  # different cells whose labels are kept
LONGEST_FACT = 2000  # letters

Rows = Iterator[tuple[int | str, Sequence[Cell]]]


@dataclass(frozen=True)
class Table:
    """A table before its meaning is decided.

    Attributes:
        path: Its file.
        names: Of the columns.
        rows: (place, cells) of each row; can be read once.
        image: The column of images, where the source itself says it; None: decided.
        class_names: Names of the classes by number.
        ours: Names of columns that are classes, because a data card says so.
        place: The noun for a place.
        file_of: From (place, name in the table) to the path of the image's file in the source; None: it brings none.
        folder: As in Contents.
        text: Applied to texts that are kept: reverts what a CSV does against spreadsheets (files/text_cells.py).
    """

    path: Path
    names: Sequence[str]
    rows: Rows
    image: int | None = None
    class_names: Sequence[str] = ()
    ours: frozenset[str] = frozenset()
    place: str = "line"
    file_of: Callable[[int | str, str], str] | None = None
    folder: Path | None = None
    text: Callable[[str], str] = str


def contents(table: Table, problems: Problems, reading: Reading) -> Contents:
    """Return the labels of a table, and the decisions about its meaning.

    Raises:
        AnnotatorError: No column names images or labels, or a column that the person named is not there.
    """
    head = list(islice(table.rows, SAMPLE))
    deciding = Deciding(
        table.names, [row for _, row in head], reading, table.path.name, table.class_names, table.ours.__contains__
    )
    columns = deciding.columns(table.image)
    if len(table.names) == 1 and (table.image is not None or plain(table.names[0]) in IMAGE):  # no class, or pictures
        return Contents([], iter(()), folder=table.folder, place=table.place)
    if not (columns.labels or columns.classes or columns.scores or is_told_facts(reading)):
        raise AnnotatorError(
            f"{table.path} has the columns {', '.join(table.names)[:300]}.\n    `{table.names[columns.image]}` names "
            "the images, and no other column holds labels: none has the names of classes, or is a class with 1, 0, "
            "yes, "
            "no, x or empty cells. Say which do: --label-column NAME, or --class-columns NAME,NAME (none: facts)."
        )
    listed = [(table.names[place], "") for place in columns.classes]
    seen = {cell for place in columns.labels for cell in deciding.texts(place)}
    items = _Items(table, columns, problems, reading, seen)
    return Contents(
        listed,
        items.all(chain(head, table.rows)),
        folder=table.folder,
        place=table.place,
        said=deciding.said,
        decided=deciding.decided,
    )


class _Items:
    """The items of the rows of one table."""

    def __init__(self, table: Table, columns: Columns, problems: Problems, reading: Reading, seen: Collection[str]):
        self._table, self._columns, self._problems, self._reading = table, columns, problems, reading
        self._known: dict[str, tuple[dict[str, None], bool, str]] = {}  # cell -> what it says
        self._seen = {mark for mark in "|;," for cell in seen if mark in cell}
        self._zero = None if reading.numbers == COUNTS_ONLY else ABSENT
        names = table.names
        self._given = {state: [Given(names[place], state) for place in columns.classes] for state in (1, -1, 0)}
        self._facts = {names[place]: place for place in columns.facts if plain(names[place]) not in BOX}
        self._state_of: Mapping[str, int | None] = columns.states
        self._is_rest = columns.classes == list(range(columns.image + 1, len(names)))
        self._is_plain = not columns.counts and self._state_of.get("1") == PRESENT and self._state_of.get("0") == ABSENT

    def all(self, rows: Rows) -> Iterator[Item]:
        """Yield one item for each row."""
        columns, table = self._columns, self._table
        for place, row in rows:
            name = self._name(row)
            if not name:
                self._problems.add(f"{self._where(place)}: the image has no name")
                continue
            item = Item(name, place, attributes=self._attributes(row) if self._facts else {})
            if columns.sha256 is not None and isinstance(content := row[columns.sha256], str):
                item.sha256 = content.strip()
            if table.file_of:
                item.file = table.file_of(place, name)
            if columns.classes:
                item.labels, item.exhaustive = self._answers(place, row)
            elif columns.labels:
                self._name_labels(item, place, row)
            elif columns.scores:
                item.scores = self._scores(place, row)
            if columns.event is not None:
                self._of_event(item, row[columns.event])
            yield item

    def _where(self, place: int | str) -> str:
        return f"{self._table.place} {place}" if isinstance(place, int) else place

    def _name(self, row: Sequence[Cell]) -> str:
        cell = row[self._columns.image]
        name = self._table.text(cell).strip() if isinstance(cell, str) else ""
        if not name or self._columns.folder is None:
            return name
        folder = row[self._columns.folder]
        place = folder.strip().replace("\\", "/").strip("/") if isinstance(folder, str) else ""
        return f"{place}/{name}" if place and place != "." else name

    def _of_event(self, item: Item, cell: Cell) -> None:
        """Make the answers of a row those of its event: at least one of its images shows what the row names."""
        event = cell.strip() if isinstance(cell, str) else ""
        if not event:
            return
        is_nothing = item.exhaustive and not item.labels
        item.event, item.event_labels = event, [Given(NOTHING, PRESENT)] if is_nothing else item.labels
        item.labels, item.exhaustive, item.answered = (), False, False

    def _attributes(self, row: Sequence[Cell]) -> dict[str, str]:
        return {
            name: self._table.text(text)[:LONGEST_FACT]
            for name, place in self._facts.items()
            if (text := cell if isinstance(cell := row[place], str) else "|".join(cell))
            and text.strip().lower() not in UNKNOWN_WORDS
        }

    def _answers(self, place: int | str, row: Sequence[Cell]) -> tuple[list[Given], bool]:
        """Return the answers of a row with one column a class, and whether each of its cells is present or absent."""
        columns = self._columns
        cells = row[columns.image + 1 :] if self._is_rest else [row[column] for column in columns.classes]
        if self._is_plain and bool(cells) and cells.count("1") + cells.count("0") == len(cells):
            return [given for cell, given in zip(cells, self._given[PRESENT], strict=True) if cell == "1"], True
        labels: list[Given] = []
        is_whole = bool(cells)
        for number_, cell in enumerate(cells):
            column = columns.classes[number_]
            word = cell.strip().lower() if isinstance(cell, str) else "|".join(cell)
            state = self._state(word, column)
            if state == _STRANGE:
                self._problems.add(
                    f"{self._where(place)}: {self._table.names[column]!r} is {word[:40]!r}; it must be 1, 0, yes, no, "
                    "x, unsure or empty. Say what it means: --present, --absent, --unsure or --unknown WORD"
                )
            elif state is not None:
                labels.append(self._given[state][number_])
            is_whole &= state in (PRESENT, ABSENT)
        return ([one for one in labels if one.state == PRESENT], True) if is_whole else (labels, False)

    def _state(self, word: str, column: int) -> int | None:
        if column in self._columns.counts and (amount := number(word)) is not None and amount >= 0:
            return PRESENT if amount else self._zero
        return self._state_of.get(word, _STRANGE)

    def _name_labels(self, item: Item, place: int | str, row: Sequence[Cell]) -> None:
        """Set the present classes of a row, or their scores."""
        columns = self._columns
        words: dict[str, None] = {}
        is_nothing = False
        for column in columns.labels:
            named, says_nothing, problem = self._labels_of(row[column])
            words |= named
            is_nothing |= says_nothing
            if problem:
                self._problems.add(f"{self._where(place)}: {problem}")
        if columns.score is None:
            item.labels = [Given(word, PRESENT) for word in words]
            item.exhaustive = is_nothing
            if is_nothing and words:
                self._problems.add(
                    f"{self._where(place)}: {', '.join(map(repr, words))} and a word for nothing besides"
                )
            return
        cell = row[columns.score]
        score = number(cell.strip()) if isinstance(cell, str) else None
        if score is None:
            if not (isinstance(cell, str) and cell.strip().lower() in UNKNOWN_WORDS):
                self._problems.add(f"{self._where(place)}: the score {str(cell)[:40]!r} is no number")
            return
        item.scores = dict.fromkeys(words, score)

    def _labels_of(self, cell: Cell) -> tuple[dict[str, None], bool, str]:
        """Return the classes that a cell names, whether it says that nothing is there, and what is wrong with it."""
        key = cell if isinstance(cell, str) else "\0".join(cell)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = self._read_labels(self._table.text(cell) if isinstance(cell, str) else cell)
        return known

    def _read_labels(self, cell: Cell) -> tuple[dict[str, None], bool, str]:
        columns, reading = self._columns, self._reading
        words = split(cell, columns.separator)
        named = {self._class(word): None for word in words if word.lower() not in UNKNOWN_WORDS}
        nothing = [word for word in words if plain(word) in columns.nothing]
        for word in nothing:
            named.pop(word, None)
        # The first rows decided what there is to ask about; what is new in later ones is no less unclear.
        problem = ""
        if any(word[0] in "{[" for word in named):
            problem = f"{str(cell).strip()[:60]!r} is neither a name nor a list of names that can be read"
        elif reading.empty_label is None and (late := [word for word in named if plain(word) in EMPTY_WORDS]):
            problem = f"{late[0]!r} may say that no class is there: say --empty-label {late[0]!r}, or none"
        elif reading.separator is None and not columns.separator and isinstance(cell, str):
            marks = [mark for mark in "|;," if mark in cell and mark not in self._seen and len(words) == 1]
            if marks:
                problem = f"{cell.strip()[:60]!r} may be several labels, with {marks[0]!r} between: say --separator"
        return named, bool(nothing), problem

    def _class(self, word: str) -> str:
        names = self._columns.class_of
        return names.get(word.removesuffix(".0"), word) if names else word

    def _scores(self, place: int | str, row: Sequence[Cell]) -> dict[str, float]:
        scores: dict[str, float] = {}
        for column in self._columns.scores:
            cell = row[column]
            text = cell.strip() if isinstance(cell, str) else ""
            if (score := number(text)) is not None:
                scores[self._table.names[column]] = score
            elif text.lower() not in UNKNOWN_WORDS:
                self._problems.add(f"{self._where(place)}: the score {text[:40]!r} is no number")
        return scores


_STRANGE = -9  # stands for a word that means nothing
assert _STRANGE not in (PRESENT, ABSENT, UNSURE)

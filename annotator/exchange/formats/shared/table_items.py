"""Items from tables, whose columns are interpreted by their first rows."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import EMPTY_EVENT_CLASS, Contents, ImportedLabel, Item
from annotator.exchange.reading.cell_words import (
    EMPTY_WORDS,
    UNKNOWN_WORDS,
    Cell,
    is_whole_number,
    normalize_word,
    parse_number,
    parse_score,
    parse_vector,
    split_labels,
)
from annotator.exchange.reading.class_name_checks import OddNameCollector
from annotator.exchange.reading.column_names import BOX_COLUMN_NAMES, IMAGE_COLUMN_NAMES
from annotator.exchange.reading.field_roles import list_field_roles
from annotator.exchange.reading.known_tables import find_table_profile
from annotator.exchange.reading.late_columns import LateColumns
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions, has_facts_only
from annotator.exchange.reading.separators import JOINING_SIGNS
from annotator.exchange.reading.table_interpreter import TableInterpreter
from annotator.exchange.reading.table_profile import ProfiledTable
from annotator.exchange.reading.table_sample import NUMBERS_AS_IDS, NUMBERS_AS_PRESENT_COUNTS, ColumnMeanings
from annotator.humanize import format_count
from annotator.records import ABSENT, PRESENT, UNSURE

SAMPLE_ROWS = 1000  # rows that decide what the columns mean
MAX_CACHED_CELLS = 10_000  # different cells whose labels are kept
MAX_FACT_CHARS = 2000  # letters
MAX_QUESTION_CHARS = 200  # of the columns that a question names
LIST_MARKS = f"|{JOINING_SIGNS}"  # each is asked about where the first rows have none

TableRows = Iterator[tuple[int | str, Sequence[Cell]]]

_WORD_PATTERN = re.compile(r"[a-z]+")
_PREDICTION_FILE_WORDS = frozenset("prediction predictions predicted preds submission inference".split())
"""Parts of the names of files that a model made, in lower case."""


@dataclass(frozen=True)
class RawTable:
    """A table before its columns are interpreted."""

    path: Path
    names: Sequence[str]
    # (place, cells) per row, readable once
    rows: TableRows
    # index of the image column, or None to find it
    image: int | None = None
    class_names: Sequence[str] = ()
    # columns that a data card lists as classes
    card_classes: frozenset[str] = frozenset()
    # noun for a row's place, for messages
    place: str = "line"
    # function from (place, image name) to the image file, or None
    file_of: Callable[[int | str, str], str] | None = None
    folder: Path | None = None
    unescape: Callable[[str], str] = str
    # sentences about the source, for the preview
    remarks: Sequence[str] = ()


def interpret_table(table: RawTable, problems: Problems, options: ReadingOptions) -> Contents:
    """Return a table's labels, and the decisions about its meaning.

    Raises AnnotatorError without image or label columns, or if a named column is missing.
    """
    profile = None if table.card_classes else find_table_profile(table.names)
    known = ProfiledTable(profile, table.names, options, table.path.name) if profile else None
    if known:
        table, options = replace(table, names=known.names, rows=known.iter_rows(table.rows)), known.options
    head = list(islice(table.rows, SAMPLE_ROWS))
    deciding = TableInterpreter(
        table.names,
        [row for _, row in head],
        options,
        table.path.name,
        table.class_names,
        table.card_classes.__contains__,
    )
    columns = deciding.interpret_columns(table.image)
    if len(table.names) == 1 and (
        table.image is not None or normalize_word(table.names[0]) in IMAGE_COLUMN_NAMES
    ):  # no class, or pictures
        return Contents([], iter(()), folder=table.folder, place=table.place)
    if not (columns.labels or columns.classes or columns.scores or has_facts_only(options)):
        raise AnnotatorError(
            f"{table.path} has the columns {', '.join(table.names)[:300]}.\n    `{table.names[columns.image]}` names "
            "the images, and no other column holds labels: none has the names of classes, or is a class with 1, 0, "
            "yes, "
            "no, x or empty cells. Say which do: --label-column NAME, or --class-columns NAME,NAME (none: facts)."
        )
    listed = [(name, "") for name in columns.vector_names or [table.names[place] for place in columns.classes]]
    seen = {cell for place in columns.labels for cell in deciding.list_texts(place)}
    items = _RowReader(table, columns, problems, options, seen, deciding.sentences)
    deciding.sentences += table.remarks
    words = set(_WORD_PATTERN.findall(table.path.stem.lower()))
    if options.score_column is None and not table.card_classes and words & _PREDICTION_FILE_WORDS:
        name = table.path.name
        why = f"the name of {name} says that a model made these labels. If people gave them, it is {NONE_VALUE}"
        deciding.interpretations.append(Interpretation("score_column", NONE_VALUE, why, False))
    deciding.interpretations[:0] = known.interpretations if known else []
    late = LateColumns(table.names, deciding.cells, columns, options) if len(head) == SAMPLE_ROWS else None
    contents = Contents(
        listed,
        items.read_items(chain(head, table.rows), deciding.interpretations, late),
        folder=table.folder,
        place=table.place,
        sentences=deciding.sentences,
        interpretations=deciding.interpretations,
        roles=list_field_roles(deciding, columns),
    )
    if known:
        contents.items = _report_left_out(contents.items, known, deciding.sentences)
    return contents


def _report_left_out(items: Iterator[Item], known: ProfiledTable, sentences: list[str]) -> Iterator[Item]:
    """Yield the items, then add the rows that were left out to the sentences of their source."""
    yield from items
    sentences += known.format_left_out()


class _RowReader:
    def __init__(
        self,
        table: RawTable,
        columns: ColumnMeanings,
        problems: Problems,
        options: ReadingOptions,
        seen: Collection[str],
        sentences: list[str],
    ):
        self._table, self._columns, self._problems, self._options = table, columns, problems, options
        self._known: dict[str, tuple[dict[str, None], bool, str]] = {}  # cell -> what it says
        self._sentences = sentences  # those of the source, of which some are known only after the last row
        self._left_out: list[int | str] = []
        self._has_ids = options.numbers == NUMBERS_AS_IDS
        self._odd_names = OddNameCollector(options.accepted_names)
        self._seen = {mark for mark in LIST_MARKS for cell in seen if mark in cell}
        self._zero = None if options.numbers == NUMBERS_AS_PRESENT_COUNTS else ABSENT
        names = table.names
        self._given = {state: [ImportedLabel(names[place], state) for place in columns.classes] for state in (1, -1, 0)}
        self._facts = {
            names[place]: place for place in columns.facts if normalize_word(names[place]) not in BOX_COLUMN_NAMES
        }
        self._state_of: Mapping[str, int | None] = columns.states
        self._is_rest = columns.classes == list(range(columns.image + 1, len(names)))
        self._is_plain = not columns.counts and self._state_of.get("1") == PRESENT and self._state_of.get("0") == ABSENT

    def read_items(
        self, rows: TableRows, interpretations: list[Interpretation], late: LateColumns | None
    ) -> Iterator[Item]:
        """Yield an item for each row. Questions that only later rows raise are added to `interpretations`."""
        columns, table = self._columns, self._table
        self._has_ids |= any((one.field, one.value) == ("numbers", NUMBERS_AS_IDS) for one in interpretations)
        self._check_column_names()
        for place, row in rows:
            if columns.review is not None and columns.row_rule and columns.row_rule.is_left_out(row[columns.review]):
                self._left_out.append(place)
                continue
            if late:
                late.add_row(place, row)
            name = self._find_image_name(row)
            if not name:
                self._problems.add(f"{self._format_place(place)}: the image has no name")
                continue
            item = Item(name, place, attributes=self._read_attributes(row) if self._facts else {})
            if columns.sha256 is not None and isinstance(content := row[columns.sha256], str):
                item.sha256 = content.strip()
            if table.file_of:
                item.file = table.file_of(place, name)
            if columns.classes:
                item.labels, item.exhaustive = self._read_class_columns(place, row)
            elif columns.labels:
                self._set_labels(item, place, row)
            elif columns.scores:
                item.scores = self._read_scores(place, row)
            if columns.event is not None:
                self._move_labels_to_event(item, row[columns.event])
            yield item
        if self._left_out:
            self._sentences.append(
                f"{format_count(len(self._left_out), 'row')} left out, which `{table.names[columns.review or 0]}` does "
                f"not mark as answers: {self._format_place(self._left_out[0])}, ..."
            )
        interpretations += late.make_questions() if late else []
        listed = ", ".join(f"`{table.names[place]}`" for place in columns.labels or columns.classes)
        if question := self._odd_names.make_question(listed[:MAX_QUESTION_CHARS]):
            interpretations.append(question)

    def _check_column_names(self) -> None:
        names = self._table.names
        if not self._table.card_classes and self._options.class_columns is None:
            for place in [*self._columns.classes, *self._columns.scores]:
                self._odd_names.add(names[place])

    def _format_place(self, place: int | str) -> str:
        return f"{self._table.place} {place}" if isinstance(place, int) else place

    def _find_image_name(self, row: Sequence[Cell]) -> str:
        cell = row[self._columns.image]
        name = self._table.unescape(cell).strip() if isinstance(cell, str) else ""
        if not name or self._columns.folder is None:
            return name
        folder = row[self._columns.folder]
        place = folder.strip().replace("\\", "/").strip("/") if isinstance(folder, str) else ""
        return f"{place}/{name}" if place and place != "." else name

    def _move_labels_to_event(self, item: Item, cell: Cell) -> None:
        """Turn the labels of an item into labels of the event that `cell` names."""
        event = cell.strip() if isinstance(cell, str) else ""
        if not event:
            return
        is_nothing = item.exhaustive and not item.labels
        item.event, item.event_labels = (
            event,
            [ImportedLabel(EMPTY_EVENT_CLASS, PRESENT)] if is_nothing else item.labels,
        )
        item.labels, item.exhaustive, item.answered = (), False, False

    def _read_attributes(self, row: Sequence[Cell]) -> dict[str, str]:
        return {
            name: self._table.unescape(text)[:MAX_FACT_CHARS]
            for name, place in self._facts.items()
            if (text := cell if isinstance(cell := row[place], str) else "|".join(cell))
            and text.strip().lower() not in UNKNOWN_WORDS
        }

    def _read_class_columns(self, place: int | str, row: Sequence[Cell]) -> tuple[list[ImportedLabel], bool]:
        """Return the answers in class columns, and whether all cells are present or absent."""
        columns = self._columns
        cells = row[columns.image + 1 :] if self._is_rest else [row[column] for column in columns.classes]
        if self._is_plain and bool(cells) and cells.count("1") + cells.count("0") == len(cells):
            return [given for cell, given in zip(cells, self._given[PRESENT], strict=True) if cell == "1"], True
        labels: list[ImportedLabel] = []
        is_whole = bool(cells)
        for number_, cell in enumerate(cells):
            column = columns.classes[number_]
            word = cell.strip().lower() if isinstance(cell, str) else "|".join(cell)
            state = self._parse_state(word, column)
            if state == _UNKNOWN_WORD_STATE:
                self._problems.add(
                    f"{self._format_place(place)}: {self._table.names[column]!r} is {word[:40]!r}; it must be 1, 0, "
                    "yes, no, x, unsure or empty. Say what it means: --present, --absent, --unsure or --unknown WORD"
                )
            elif state is not None:
                labels.append(self._given[state][number_])
            is_whole &= state in (PRESENT, ABSENT)
        return ([one for one in labels if one.state == PRESENT], True) if is_whole else (labels, False)

    def _parse_state(self, word: str, column: int) -> int | None:
        if column in self._columns.counts and (amount := parse_number(word)) is not None and amount >= 0:
            return PRESENT if amount else self._zero
        return self._state_of.get(word, _UNKNOWN_WORD_STATE)

    def _set_labels(self, item: Item, place: int | str, row: Sequence[Cell]) -> None:
        columns = self._columns
        if columns.vector_names:
            self._set_vector(item, place, row[columns.labels[0]])
            return
        words: dict[str, None] = {}
        is_nothing = False
        for column in columns.labels:
            named, says_nothing, problem = self._get_cell_labels(row[column])
            words |= named
            is_nothing |= says_nothing
            if problem:
                self._problems.add(f"{self._format_place(place)}: {problem}")
        if columns.score is None:
            item.labels = [ImportedLabel(word, PRESENT) for word in words]
            item.exhaustive = is_nothing
            if is_nothing and words:
                self._problems.add(
                    f"{self._format_place(place)}: {', '.join(map(repr, words))} and a word for nothing besides"
                )
            return
        cell = row[columns.score]
        score = parse_score(cell.strip()) if isinstance(cell, str) else None
        if score is None:
            if not (isinstance(cell, str) and cell.strip().lower() in UNKNOWN_WORDS):
                self._problems.add(f"{self._format_place(place)}: the score {str(cell)[:40]!r} is no number")
            return
        item.scores = dict.fromkeys(words, score)

    def _set_vector(self, item: Item, place: int | str, cell: Cell) -> None:
        names, values = self._columns.vector_names, parse_vector(cell)
        if cell in ("", []):
            return
        if len(values) != len(names):
            self._problems.add(
                f"{self._format_place(place)}: {str(cell)[:60]!r} is no list of {len(names)} times 0 or 1"
            )
            return
        item.labels = [ImportedLabel(name, PRESENT) for name, value in zip(names, values, strict=True) if value == "1"]
        item.exhaustive = True

    def _get_cell_labels(self, cell: Cell) -> tuple[dict[str, None], bool, str]:
        key = cell if isinstance(cell, str) else "\0".join(cell)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_CACHED_CELLS:
                self._known.clear()
            known = self._known[key] = self._parse_cell_labels(
                self._table.unescape(cell) if isinstance(cell, str) else cell
            )
        return known

    def _parse_cell_labels(self, cell: Cell) -> tuple[dict[str, None], bool, str]:
        columns, options = self._columns, self._options
        words = split_labels(cell, columns.separator)
        named = {self._find_class_name(word): None for word in words if word.lower() not in UNKNOWN_WORDS}
        nothing = [word for word in words if normalize_word(word) in columns.empty_words]
        for word in nothing:
            named.pop(word, None)
        for word in named:
            if not (self._has_ids and is_whole_number(word)):
                self._odd_names.add(word)
        # The first rows decided what there is to ask about; what is new in later ones is no less unclear.
        problem = ""
        if any(word[0] in "{[" for word in named):
            problem = f"{str(cell).strip()[:60]!r} is neither a name nor a list of names that can be read"
        elif options.empty_label is None and (late := [word for word in named if normalize_word(word) in EMPTY_WORDS]):
            problem = f"{late[0]!r} may say that no class is there: say --empty-label {late[0]!r}, or none"
        elif options.separator is None and not columns.separator and isinstance(cell, str):
            marks = [mark for mark in LIST_MARKS if mark in cell and mark not in self._seen and len(words) == 1]
            if marks:
                problem = f"{cell.strip()[:60]!r} may be several labels, with {marks[0]!r} between: say --separator"
        return named, bool(nothing), problem

    def _find_class_name(self, word: str) -> str:
        names = self._columns.class_of
        return names.get(word.removesuffix(".0"), word) if names else word

    def _read_scores(self, place: int | str, row: Sequence[Cell]) -> dict[str, float]:
        scores: dict[str, float] = {}
        for column in self._columns.scores:
            cell = row[column]
            text = cell.strip() if isinstance(cell, str) else ""
            if (score := parse_score(text)) is not None:
                scores[self._table.names[column]] = score
            elif text.lower() not in UNKNOWN_WORDS:
                self._problems.add(f"{self._format_place(place)}: the score {text[:40]!r} is no number")
        return scores


_UNKNOWN_WORD_STATE = -9  # stands for a word that means nothing
assert _UNKNOWN_WORD_STATE not in (PRESENT, ABSENT, UNSURE)

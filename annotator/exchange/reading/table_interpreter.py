"""Interpretation of table columns from the header and first rows.

The user's options override all rules, and ambiguous decisions are questions.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from annotator.errors import AnnotatorError
from annotator.exchange.reading import column_names
from annotator.exchange.reading.cell_meanings import decide_labels, decide_states
from annotator.exchange.reading.cell_words import (
    EMPTY_WORDS,
    MINUS_ONE_WORDS,
    Cell,
    build_state_words,
    is_whole_number,
    normalize_word,
    parse_number,
    parse_score,
    quote_words,
)
from annotator.exchange.reading.class_name_checks import (
    describe_odd_name,
)
from annotator.exchange.reading.kept_rows import propose_kept_rows
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.exchange.reading.row_rules import parse_row_rule
from annotator.exchange.reading.table_sample import (
    NUMBERS_AS_COUNTS,
    NUMBERS_AS_FACTS,
    NUMBERS_AS_IDS,
    NUMBERS_AS_PRESENT_COUNTS,
    ColumnMeanings,
    TableSample,
)

MIN_ANSWER_SHARE = 0.5  # share of answers in a column from which its other words are asked about
MAX_DISTINCT_CODES = 6  # different numbers of a column of answers, codes for what is missing included
CERTAIN_SHARE = 0.9  # share of cells that makes a rule about them certain
MAX_COUNT = 1000  # of a count; larger numbers are something else

_VOCABULARIES = {
    "numbers": "1 0 1.0 0.0 +1 -1 -1.0",
    "truth values": "true false",
    "yes and no": "yes no y n",
    "crosses": "x ✓ ✔",
    "signs": "positive negative pos neg",
    "letters": "t f",
}
"""Words that one column of answers uses together."""
_ONE_SIDED_WORDS = ("letters",)
"""Vocabularies that are asked about even alone: F is also a sex."""


def _name_vocabulary(text: str) -> str:
    word = text.strip().lower()
    return next((name for name, words in _VOCABULARIES.items() if word in words.split()), "words")


class TableInterpreter(TableSample):
    """An interpreter of one table, which decides what each column means.

    Args:
        rows: First rows, as `to_cell` returns cells.
        source_name: For messages.
        is_our_class: Returns whether a data card lists a column name as class.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        reading: ReadingOptions,
        source_name: str,
        class_names: Sequence[str] = (),
        is_our_class: Callable[[str], bool] = lambda name: False,
    ):
        super().__init__(names, rows, reading, class_names)
        self.what, self._ours = source_name, is_our_class
        self.strange: set[str] = set()  # words of cells that have to be asked about

    def interpret_columns(self, image: int | None = None) -> ColumnMeanings:
        """Return the meaning of all columns. `image` is the image column, if the source defines it.

        Raises AnnotatorError without an image column.
        """
        image = self._find_image_column() if image is None else image
        found = ColumnMeanings(image, states=build_state_words(self.reading))
        found.folder = self._find_folder_column(image)
        found.sha256 = next((place for place, name in enumerate(self.names) if name.lower() == "sha256"), None)
        if self.reading.event_column not in (None, NONE_VALUE):
            found.event = column_names.lookup(self.reading.event_column or "", self.names, "--event-column")
        self._find_kept_rows(found)
        taken = {found.image, found.folder, found.sha256, found.event}
        free = [place for place in range(len(self.names)) if place not in taken]
        found.score = self._find_score_column(free)
        free = [place for place in free if place != found.score]
        found.labels, found.classes, found.scores, counts = self._find_answer_columns(free)
        found.counts = frozenset(counts)
        if self._are_named_vectors(found.labels):
            found.vector_names = self.class_names
        if found.score is not None and not found.labels:
            found.score = None
        used = {*found.labels, *found.classes, *found.scores}
        found.facts = [
            place
            for place in free
            if place not in used
            and normalize_word(self.names[place])
            not in {*column_names.BOX_COLUMN_NAMES, "width", "height", "missing", ""}
        ]
        if found.review is None and (found.labels or found.classes):
            self._ask_kept_rows(found)
        found.states |= dict.fromkeys(self.strange)
        decide_labels(self, found)
        decide_states(self, found)
        return found

    # Images ----------------------------------------------------------------------------------------------------------

    def _find_image_column(self) -> int:
        if self.reading.image_column:
            return column_names.lookup(self.reading.image_column, self.names, "--image-column")
        known = [
            place
            for word in column_names.IMAGE_COLUMN_NAMES
            for place, name in enumerate(self.names)
            if normalize_word(name) == word and (self.list_texts(place) or not self.cells[place])
        ]
        shares = {place: column_names.compute_image_share(self.cells[place]) for place in range(len(self.names))}
        like_files = [place for place in known if shares[place] >= CERTAIN_SHARE]
        like_files = like_files or [
            place for place, share in shares.items() if share >= CERTAIN_SHARE and place not in known
        ]
        candidates = like_files or known
        if not candidates:
            raise AnnotatorError(
                f"{self.what} has the columns {', '.join(self.names)[:300]}.\n    None of them names images, by its "
                "name or by what is in it. Say which does: --image-column NAME. Labels are in one column a class (1, 0 "
                "or empty), or in a column with the names of classes."
            )
        best = max(
            candidates, key=lambda place: sum(text.count("/") + text.count("\\") for text in self.list_texts(place))
        )
        rivals = [
            place
            for place in like_files
            if place != best and self._list_base_names(place) != self._list_base_names(best)
        ]
        first = candidates[0] if rivals or not like_files else best
        name, share = self.names[first], shares[first]
        why = f"`{name}` names the images" + (f": {share:.0%} of its cells end as image files do" if share else "")
        self.add_interpretation("image_column", name, why, not rivals, [self.names[place] for place in rivals])
        return first

    def _list_base_names(self, place: int) -> list[str]:
        return [text.replace("\\", "/").rpartition("/")[2] for text in self.list_texts(place)]

    def _find_folder_column(self, image: int) -> int | None:
        wanted = self.reading.folder_column
        if wanted == NONE_VALUE:
            return None
        if wanted:
            return column_names.lookup(wanted, self.names, "--folder-column")
        images = self.list_texts(image)
        if any("/" in text or "\\" in text for text in images):
            return None
        for words, only_if_repeated in (
            (column_names.FOLDER_COLUMN_NAMES, False),
            (column_names.SPLIT_COLUMN_NAMES, True),
        ):
            for place, name in enumerate(self.names):
                if normalize_word(name) not in words or place == image:
                    continue
                pairs = (
                    set(zip(self.cells[place], self.cells[image], strict=True)) if self.is_text_column(place) else set()
                )
                if only_if_repeated and not len(pairs) > len(set(images)):
                    continue
                self.add_interpretation("folder_column", name, f"`{name}` is the folder of the image, before its name")
                return place
        return None

    def _find_kept_rows(self, found: ColumnMeanings) -> None:
        if rule := parse_row_rule(self.reading.kept_rows or ""):
            found.row_rule = rule
            found.review = column_names.lookup(rule.column, self.names, "--rows")

    def _ask_kept_rows(self, found: ColumnMeanings) -> None:
        """Ask which rows hold answers where a column says that some of them were rejected or come from a model."""
        for place in found.facts:
            name, texts = self.names[place], self.list_answer_texts(place)
            value = None if self._ours(name) else propose_kept_rows(name, texts)
            if value is None:
                continue
            why = (
                f"`{name}` holds {quote_words(dict.fromkeys(texts), 4)}: rows of a model, and rejected, unfinished or "
                "empty rows, are not answers. Say which words mark answers, or that all rows are answers (none)"
            )
            self.add_interpretation("kept_rows", value, why, False, () if value == NONE_VALUE else (NONE_VALUE,))
            return

    # Scores ----------------------------------------------------------------------------------------------------------

    def _find_score_column(self, free: Sequence[int]) -> int | None:
        wanted = self.reading.score_column
        if wanted == NONE_VALUE:
            return None
        place = column_names.lookup(wanted, self.names, "--score-column") if wanted else None
        if (
            not any(column_names.parse_label_column(self.names[place]) for place in free)
            and not self.reading.label_columns
        ):
            return None
        if place is not None:
            return place
        for place in free:
            name = self.names[place]
            texts = self.list_answer_texts(place)
            in_lists = [] if texts else self.list_label_words(place)  # a score for each label of a list
            texts = texts or in_lists
            if not column_names.is_score_column(name) or self._ours(name) or not texts:
                continue
            numbers = [found for text in texts if (found := parse_score(text)) is not None]
            is_number = len(numbers) == len(texts)
            held = f"numbers from {min(numbers):g} to {max(numbers):g}" if is_number else quote_words(set(texts), 3)
            why = (
                f"`{name}` holds {held}: what a model predicts, not answers. They can be added as predictions; if "
                f"people gave the labels all the same, it is {NONE_VALUE}"
            )
            if is_number and not in_lists:
                self.add_interpretation("score_column", name, why, False, (NONE_VALUE,))
            else:
                self.add_interpretation("score_column", NONE_VALUE, why, False)
            return place if is_number and not in_lists else None
        return None

    # Classes ---------------------------------------------------------------------------------------------------------

    def _find_answer_columns(self, free: Sequence[int]) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return the columns of class names, answers per class, scores per class, and counts."""
        reading = self.reading
        if reading.label_columns is not None or reading.class_columns is not None:
            labels = [column_names.lookup(name, self.names, "--label-column") for name in reading.label_columns or ()]
            classes = [column_names.lookup(name, self.names, "--class-columns") for name in reading.class_columns or ()]
            counts = [place for place in classes if self._classify_cells(place) == "count"]
            self._ask_counts(counts)
            return labels, classes, [], classes if counts else []
        kinds = {place: self._classify_cells(place) for place in free}
        labels = self._find_label_columns(free, kinds)
        ours = [place for place in free if self._ours(self.names[place])]
        if ours:
            return [], ours, [], []
        answers = [
            place
            for place, kind in kinds.items()
            if (
                kind == "answer"
                or (kind == "empty" and normalize_word(self.names[place]) not in column_names.AMBIGUOUS_COLUMN_NAMES)
            )
            and place not in labels
            and not self._is_fact(place)
        ]
        fractions = [
            place
            for place, kind in kinds.items()
            if kind == "fraction" and place not in labels and not self._is_fact(place)
        ]
        counts = [
            place
            for place, kind in kinds.items()
            if kind == "count"
            and place not in labels
            and not self._is_fact(place)
            and normalize_word(self.names[place]) not in column_names.AMBIGUOUS_COLUMN_NAMES
        ]
        if labels:
            self._ask_fractions_of_labels(labels, fractions)
            return self._choose_labels_or_classes(labels, answers)
        if fractions and len(fractions) >= len(answers):
            listed = quote_words(self.names[place] for place in fractions)
            self.add_interpretation(
                "score_column",
                self.names[fractions[0]],
                f"the columns {listed} hold numbers between 0 and 1: what a model predicts, not answers. They can be "
                f"added as predictions; if they are facts of the images, it is {NONE_VALUE}",
                False,
                (NONE_VALUE,),
            )
            return [], [], ([] if reading.score_column == NONE_VALUE else [*fractions, *answers]), []
        if fractions:
            listed = quote_words(self.names[place] for place in fractions)
            kept = ",".join(self.names[place] for place in answers)
            self.add_interpretation(
                "class_columns",
                kept,
                f"the cells of {listed} are numbers between 0 and 1: no answers, and read as facts",
                False,
            )
        if counts and reading.numbers != NUMBERS_AS_FACTS:
            self._ask_counts(counts)
            every = sorted([*answers, *counts])
            return [], every, [], every
        answers = sorted([*answers, *self._ask_partly(free, kinds)])
        self._ask_doubtful(answers)
        self._ask_other_words(answers)
        self._ask_scores_beside(free)
        self._ask_unexplained(free, kinds, answers)
        if not answers:
            return self._guess_label_column(free, kinds), [], [], []
        return [], answers, [], []

    def _is_fact(self, place: int) -> bool:
        name = self.names[place]
        return column_names.is_fact_column(name) or (
            self.reading.score_column == NONE_VALUE and normalize_word(name) in column_names.SCORE_COLUMN_NAMES
        )

    def _classify_cells(self, place: int) -> str:
        """Return the type of a column's cells: "answer", "count", "fraction", "partly", "text", "list" or "empty"."""
        if not self.is_text_column(place):
            return "list"
        texts = self.list_answer_texts(place)
        if not texts:
            return "empty"
        states = build_state_words(self.reading)
        known = [text.lower() in states or text in MINUS_ONE_WORDS for text in texts]
        if all(known):
            return "answer"
        if (
            any(text.startswith("-") for text in texts)
            and sum(known) >= MIN_ANSWER_SHARE * len(texts)
            and len(set(texts)) <= MAX_DISTINCT_CODES
        ):
            return "partly"  # such as -9 for what is missing
        if all(is_whole_number(text) for text in texts):
            values = [int(text.removesuffix(".0")) for text in texts]
            return "count" if min(values) <= 1 and max(values) <= MAX_COUNT else "number"
        numbers = [parse_number(text) for text in texts]
        if all(one is not None for one in numbers):
            return "fraction" if all(0 <= (one or 0) <= 1 for one in numbers) else "number"
        return "partly" if sum(known) >= MIN_ANSWER_SHARE * len(texts) else "text"

    def _ask_counts(self, counts: Sequence[int]) -> None:
        if counts:
            listed = quote_words(self.names[place] for place in counts)
            self.add_interpretation(
                "numbers",
                NUMBERS_AS_COUNTS,
                f"the cells of {listed} are whole numbers, also 2 and more: 1 and more is present, and 0 absent "
                f"({NUMBERS_AS_COUNTS}) or unknown ({NUMBERS_AS_PRESENT_COUNTS}); or the numbers are facts of the "
                "images (facts)",
                False,
                (NUMBERS_AS_PRESENT_COUNTS, NUMBERS_AS_FACTS),
            )

    def _are_named_vectors(self, places: Sequence[int]) -> bool:
        """Return whether a column holds a vector of answers for each image, whose classes are listed beside it."""
        return (
            len(places) == 1 and len(self.class_names) > 2 and self.measure_vectors(places[0]) == len(self.class_names)
        )

    def _are_whole_numbers(self, place: int) -> bool:
        words = self.list_label_words(place)
        return bool(self.measure_vectors(place)) or (bool(words) and all(map(is_whole_number, words)))

    def _ask_ranks(self, labels: Sequence[int], free: Sequence[int]) -> None:
        ranks = [place for place in free if normalize_word(self.names[place]) in column_names.RANK_COLUMN_NAMES]
        others = [self.names[place] for place in ranks if place not in labels]
        if not others or not set(ranks) & set(labels):
            return
        chosen = ",".join(self.names[place] for place in labels)
        why = (
            f"{quote_words([chosen, *others], 8)} are ranks of a taxonomy: any of them may name the classes. If a name "
            "needs two of them, such as genus and epithet, join them into one column first"
        )
        self.add_interpretation("label_columns", chosen, why, False, others)

    def _ask_scores_beside(self, free: Sequence[int]) -> None:
        scores = [self.names[place] for place in free if column_names.is_score_column(self.names[place])]
        if any(self.list_answer_texts(self.names.index(name)) for name in scores):
            why = (
                f"{quote_words(scores)} may be a model's scores of the answers beside them. If people gave these "
                f"answers, it is {NONE_VALUE}"
            )
            self.add_interpretation("score_column", NONE_VALUE, why, False)

    def _ask_fractions_of_labels(self, labels: Sequence[int], fractions: Sequence[int]) -> None:
        """Ask whether a model gave the labels, if fractions such as p_fox are named after them."""
        words = {normalize_word(text) for place in labels for text in self.list_label_words(place)} - {""}
        named = [self.names[place] for place in fractions]
        named = [name for name in named if any(word in normalize_word(name) for word in words)]
        if named and self.reading.score_column is None:
            why = f"{quote_words(named)} hold fractions of labels, which a model may have given. If not: {NONE_VALUE}"
            self.add_interpretation("score_column", NONE_VALUE, why, False)

    def _ask_other_words(self, answers: Sequence[int]) -> None:
        """Ask about columns whose words for yes and no are others than in most columns of answers."""
        kinds = {place: {_name_vocabulary(text) for text in self.list_answer_texts(place)} for place in answers}
        counts = Counter(kind for found in kinds.values() for kind in found)
        if not counts:
            return
        main = counts.most_common(1)[0][0]
        other = [place for place, found in kinds.items() if found and main not in found]
        if main in _ONE_SIDED_WORDS and len(counts) == 1:
            other = [place for place, found in kinds.items() if found]
        if not other:
            return
        words = quote_words(dict.fromkeys(text for place in other for text in self.list_answer_texts(place)), 3)
        rest = ",".join(self.names[place] for place in answers if place not in other)
        every = ",".join(self.names[place] for place in answers)
        listed = quote_words(self.names[place] for place in other)
        why = f"{listed} with {words}: answers for a class, or facts of the images"
        self.add_interpretation("class_columns", every, why, False, (rest or NONE_VALUE,))

    def _ask_unexplained(self, free: Sequence[int], kinds: Mapping[int, str], answers: Sequence[int]) -> None:
        """Ask whether columns of answers are the classes where another column may hold the names of classes."""
        texts = [
            place
            for place in free
            if kinds[place] in ("text", "list")
            and place not in answers
            and not self._is_fact(place)
            and normalize_word(self.names[place]) not in column_names.AMBIGUOUS_COLUMN_NAMES
            and column_names.compute_image_share(self.cells[place]) < CERTAIN_SHARE
            and any(not describe_odd_name(word) for word in self.list_label_words(place))
        ]
        if not texts or not any(self.list_answer_texts(place) for place in answers):
            return
        every = ",".join(self.names[place] for place in answers)
        example = next(word for word in self.list_label_words(texts[0]) if not describe_odd_name(word))
        why = (
            f"{quote_words(self.names[place] for place in answers)} hold answers, and "
            f"{quote_words(self.names[place] for place in texts)} hold texts such as {example[:40]!r}: the columns of "
            "answers are the classes and the texts are facts, or one column of texts names the classes "
            f"(--label-column {shlex.quote(self.names[texts[0]])})"
        )
        self.add_interpretation("class_columns", every, why, False, (NONE_VALUE,))

    def _ask_doubtful(self, answers: Sequence[int]) -> None:
        doubtful = [
            place for place in answers if normalize_word(self.names[place]) in column_names.AMBIGUOUS_COLUMN_NAMES
        ]
        if doubtful:
            listed = quote_words(self.names[place] for place in doubtful)
            rest = ",".join(self.names[place] for place in answers if place not in doubtful)
            every = ",".join(self.names[place] for place in answers)
            why = f"{listed} hold answers as the columns of classes do, but have the names of facts"
            self.add_interpretation("class_columns", every, why, False, (rest or NONE_VALUE,))

    def _ask_partly(self, free: Sequence[int], kinds: Mapping[int, str]) -> list[int]:
        asked: list[int] = []
        for place in free:
            if kinds[place] != "partly" or self._is_fact(place):
                continue
            states = build_state_words(self.reading)
            strange = list(dict.fromkeys(text for text in self.list_answer_texts(place) if text.lower() not in states))
            why = (
                f"`{self.names[place]}` is an answer in most rows, and {quote_words(strange)} in the others: say what "
                "that means, by --present, --absent, --unsure or --unknown"
            )
            self.interpretations.append(Interpretation("unknown", ",".join(strange[:20]), why, False))
            self.strange |= {word.lower() for word in strange}
            asked.append(place)
        return asked

    def _find_label_columns(self, free: Sequence[int], kinds: Mapping[int, str]) -> list[int]:
        found: dict[str, list[int]] = {}
        for place in free:
            named = column_names.parse_label_column(self.names[place])
            if named and not self._ours(self.names[place]):
                found.setdefault(named[0], []).append(place)
        # A column that is called "label" and has yes or no in it is a class of this name; one with 0 and 1 may be that.
        for word, places in list(found.items()):
            if all(kinds[place] == "empty" for place in places) and len(found) > 1:
                del found[word]
        if not found:
            return []
        textual = [
            word
            for word, places in found.items()
            if any(kinds[place] in ("text", "list") and not self._are_whole_numbers(place) for place in places)
        ]
        words = textual or list(found)
        named_alike = [
            self.names[place]
            for place in free
            if kinds[place] in ("text", "list")
            and column_names.ends_as_label_column(self.names[place])
            and self.cells[place] != self.cells[found[words[0]][0]]
        ]
        first = self.names[found[words[0]][0]]
        others = [*(self.names[found[word][0]] for word in words[1:]), *named_alike]
        if others:
            shown = quote_words([first, *others])
            self.add_interpretation("label_columns", first, f"{shown} could each name the classes", False, others)
        places = found[words[0]]
        self._ask_ranks(places, free)
        if not textual and self.reading.numbers != NUMBERS_AS_IDS:
            return self._interpret_numbered_labels(places, kinds)
        return places

    def _interpret_numbered_labels(self, places: Sequence[int], kinds: Mapping[int, str]) -> list[int]:
        name = self.names[places[0]]
        if self._are_named_vectors(places):
            return list(places)
        texts = [text for place in places for text in self.list_label_words(place)]
        if not texts:
            return list(places)
        if all(is_whole_number(text) for text in texts):
            if self.reading.numbers == NUMBERS_AS_FACTS:
                return []
            known = bool(self.class_names) and all(
                int(text.removesuffix(".0")) < len(self.class_names) for text in texts
            )
            if known:
                why = f"`{name}` holds numbers of classes, whose names are in the list beside the table"
            else:
                why = (
                    f"`{name}` holds numbers: ids of classes, which no list beside the table names ({NUMBERS_AS_IDS}), "
                    "or facts"
                )
                if length := self.measure_vectors(places[0]):
                    why += (
                        f". Lists of {length} times 0 or 1 hold an answer for each class: write these names into "
                        "classes.txt beside the table, one a line in their order"
                    )
            self.add_interpretation("numbers", NUMBERS_AS_IDS, why, known, () if known else (NUMBERS_AS_FACTS,))
            return list(places)
        if kinds[places[0]] == "answer":
            why = f"`{name}` holds answers such as {texts[0]!r}: it is a class of this name, or names classes"
            self.add_interpretation("class_columns", name, why, False)
            return []
        return list(places)

    def _choose_labels_or_classes(
        self, labels: list[int], answers: list[int]
    ) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return the label columns, or instead the class columns if these repeat the same classes."""
        answers = [
            place
            for place in answers
            if normalize_word(self.names[place]) not in column_names.AMBIGUOUS_COLUMN_NAMES
            and self.list_answer_texts(place)
        ]
        if not answers:
            return labels, [], [], []
        named = {normalize_word(text) for place in labels for text in self.list_label_words(place)}
        if named <= {normalize_word(self.names[place]) for place in answers} | EMPTY_WORDS:
            return [], answers, [], []
        listed = quote_words(self.names[place] for place in answers)
        why = f"`{self.names[labels[0]]}` names classes, but {listed} may be answers too (left out as facts)"
        self.add_interpretation("label_columns", self.names[labels[0]], why, False, (NONE_VALUE,))
        return labels, [], [], []

    def _guess_label_column(self, free: Sequence[int], kinds: Mapping[int, str]) -> list[int]:
        """Return the first column whose texts may name classes, and ask the user about it."""
        likely = [
            place
            for place in free
            if kinds[place] == "list"
            or (
                kinds[place] == "text"
                and not self._is_fact(place)
                and column_names.compute_image_share(self.cells[place]) < CERTAIN_SHARE
            )
        ]
        likely = [
            place for place in likely if normalize_word(self.names[place]) not in column_names.AMBIGUOUS_COLUMN_NAMES
        ]
        if not likely:
            return []
        shown = quote_words(self.names[place] for place in likely)
        others = [*(self.names[place] for place in likely[1:]), NONE_VALUE]
        self.add_interpretation(
            "label_columns",
            self.names[likely[0]],
            f"no column is called label; {shown} may name classes",
            False,
            others,
        )
        return likely[:1]

"""Decides what the columns of a table mean, from its header and its first rows, and says so.

A person's Reading goes before every rule. Each decision is kept as Decided, with its reason; where another meaning fits
as well, it is a question.
"""

from collections.abc import Callable, Mapping, Sequence

from annotator.errors import AnnotatorError
from annotator.exchange.reading import columns
from annotator.exchange.reading.cells import decide_labels, decide_states
from annotator.exchange.reading.reading import NONE, Decided, Reading
from annotator.exchange.reading.sample import COUNTS, COUNTS_ONLY, FACTS, IDS, Columns, Sample
from annotator.exchange.reading.words import (
    EMPTY_WORDS,
    MINUS,
    Cell,
    in_words,
    is_whole_number,
    number,
    plain,
    states_of,
)

HALF = 0.5  # share of answers in a column from which its other words are asked about
FEW = 6  # different numbers of a column of answers, codes for what is missing included
SURE = 0.9  # share of cells that makes a rule about them certain
MOST = 1000  # of a count; larger numbers are something else


class Deciding(Sample):
    """The decisions about one table.

    Args:
        names: Of the columns.
        rows: The first rows, cells as `words.as_cell` gives them.
        what: The source in messages.
        class_names: Names of the classes by number, where a file beside the table lists them.
        is_our_class: Whether a column is a class for certain, because a data card says so.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        reading: Reading,
        what: str,
        class_names: Sequence[str] = (),
        is_our_class: Callable[[str], bool] = lambda name: False,
    ):
        super().__init__(names, rows, reading, class_names)
        self.what, self._ours = what, is_our_class
        self.strange: set[str] = set()  # words of cells that have to be asked about

    def columns(self, image: int | None = None) -> Columns:
        """Return the meaning of all columns.

        Args:
            image: The column of images, where the source itself says it.

        Raises:
            AnnotatorError: No column names images, or a column that the person named is not there.
        """
        image = self._image() if image is None else image
        found = Columns(image, states=states_of(self.reading))
        found.folder = self._folder(image)
        found.sha256 = next((place for place, name in enumerate(self.names) if name.lower() == "sha256"), None)
        if self.reading.event_column not in (None, NONE):
            found.event = columns.lookup(self.reading.event_column or "", self.names, "--event-column")
        taken = {found.image, found.folder, found.sha256, found.event}
        free = [place for place in range(len(self.names)) if place not in taken]
        found.score = self._score(free)
        free = [place for place in free if place != found.score]
        found.labels, found.classes, found.scores, counts = self._answers(free)
        found.counts = frozenset(counts)
        if found.score is not None and not found.labels:
            found.score = None
        used = {*found.labels, *found.classes, *found.scores}
        found.facts = [
            place
            for place in free
            if place not in used and plain(self.names[place]) not in {*columns.BOX, "width", "height", "missing", ""}
        ]
        found.states |= dict.fromkeys(self.strange)
        decide_labels(self, found)
        decide_states(self, found)
        self._say_facts(found)
        return found

    # Images ----------------------------------------------------------------------------------------------------------

    def _image(self) -> int:
        if self.reading.image_column:
            return columns.lookup(self.reading.image_column, self.names, "--image-column")
        known = [
            place
            for word in columns.IMAGE
            for place, name in enumerate(self.names)
            if plain(name) == word and (self.texts(place) or not self.cells[place])
        ]
        shares = {place: columns.share_of_images(self.cells[place]) for place in range(len(self.names))}
        like_files = [place for place in known if shares[place] >= SURE]
        like_files = like_files or [place for place, share in shares.items() if share >= SURE and place not in known]
        candidates = like_files or known
        if not candidates:
            raise AnnotatorError(
                f"{self.what} has the columns {', '.join(self.names)[:300]}.\n    None of them names images, by its "
                "name or by what is in it. Say which does: --image-column NAME. Labels are in one column a class (1, 0 "
                "or empty), or in a column with the names of classes."
            )
        best = max(candidates, key=lambda place: sum(text.count("/") + text.count("\\") for text in self.texts(place)))
        rivals = [place for place in like_files if place != best and self._bases(place) != self._bases(best)]
        first = candidates[0] if rivals or not like_files else best
        name, share = self.names[first], shares[first]
        why = f"`{name}` names the images" + (f": {share:.0%} of its cells end as image files do" if share else "")
        self.decide("image_column", name, why, not rivals, [self.names[place] for place in rivals])
        return first

    def _bases(self, place: int) -> list[str]:
        return [text.replace("\\", "/").rpartition("/")[2] for text in self.texts(place)]

    def _folder(self, image: int) -> int | None:
        wanted = self.reading.folder_column
        if wanted == NONE:
            return None
        if wanted:
            return columns.lookup(wanted, self.names, "--folder-column")
        images = self.texts(image)
        if any("/" in text or "\\" in text for text in images):
            return None
        for words, only_if_repeated in ((columns.FOLDER, False), (columns.SPLIT, True)):
            for place, name in enumerate(self.names):
                if plain(name) not in words or place == image:
                    continue
                pairs = set(zip(self.cells[place], self.cells[image], strict=True)) if self.is_text(place) else set()
                if only_if_repeated and not len(pairs) > len(set(images)):
                    continue
                self.decide("folder_column", name, f"`{name}` is the folder of the image, before its name")
                return place
        return None

    # Scores ----------------------------------------------------------------------------------------------------------

    def _score(self, free: Sequence[int]) -> int | None:
        """Return the column with the score of the row's label."""
        wanted = self.reading.score_column
        if wanted == NONE:
            return None
        place = columns.lookup(wanted, self.names, "--score-column") if wanted else None
        if not any(columns.label_number(self.names[place]) for place in free) and not self.reading.label_columns:
            return None
        if place is not None:
            return place
        for place in free:
            if plain(self.names[place]) not in columns.SCORE or self._ours(self.names[place]):
                continue
            numbers = [found for text in self.filled(place) if (found := number(text)) is not None]
            if not numbers or len(numbers) < SURE * len(self.filled(place)):
                continue
            name = self.names[place]
            self.decide(
                "score_column",
                name,
                f"`{name}` holds numbers from {min(numbers):g} to {max(numbers):g}: what a model predicts, not "
                f"answers. They can be added as predictions; if people gave the labels all the same, it is {NONE}",
                False,
                (NONE,),
            )
            return place
        return None

    # Classes ---------------------------------------------------------------------------------------------------------

    def _answers(self, free: Sequence[int]) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return the columns of labels, of classes, of scores of classes, and those of classes that are counts."""
        reading = self.reading
        if reading.label_columns is not None or reading.class_columns is not None:
            labels = [columns.lookup(name, self.names, "--label-column") for name in reading.label_columns or ()]
            classes = [columns.lookup(name, self.names, "--class-columns") for name in reading.class_columns or ()]
            counts = [place for place in classes if self._kind(place) == "count"]
            self._ask_counts(counts)
            return labels, classes, [], classes if counts else []
        kinds = {place: self._kind(place) for place in free}
        labels = self._label_columns(free, kinds)
        ours = [place for place in free if self._ours(self.names[place])]
        if ours:
            return [], ours, [], []
        answers = [
            place
            for place, kind in kinds.items()
            if (kind == "answer" or (kind == "empty" and plain(self.names[place]) not in columns.FACTS_OR_CLASSES))
            and place not in labels
            and not self._fact(place)
        ]
        fractions = [
            place
            for place, kind in kinds.items()
            if kind == "fraction" and place not in labels and not self._fact(place)
        ]
        counts = [
            place
            for place, kind in kinds.items()
            if kind == "count"
            and place not in labels
            and not self._fact(place)
            and plain(self.names[place]) not in columns.FACTS_OR_CLASSES
        ]
        if labels:
            return self._labels_or_classes(labels, answers)
        if fractions and len(fractions) >= len(answers):
            listed = in_words(self.names[place] for place in fractions)
            self.decide(
                "score_column",
                self.names[fractions[0]],
                f"the columns {listed} hold numbers between 0 and 1: what a model predicts, not answers. They can be "
                f"added as predictions; if they are facts of the images, it is {NONE}",
                False,
                (NONE,),
            )
            return [], [], ([] if reading.score_column == NONE else [*fractions, *answers]), []
        if fractions:
            listed = in_words(self.names[place] for place in fractions)
            kept = ",".join(self.names[place] for place in answers)
            self.decide(
                "class_columns",
                kept,
                f"the cells of {listed} are numbers between 0 and 1: no answers, and read as facts",
                False,
            )
        if counts and reading.numbers != FACTS:
            self._ask_counts(counts)
            every = sorted([*answers, *counts])
            return [], every, [], every
        answers = sorted([*answers, *self._ask_partly(free, kinds)])
        self._ask_doubtful(answers)
        if not answers:
            return self._guessed_label_column(free, kinds), [], [], []
        return [], answers, [], []

    def _fact(self, place: int) -> bool:
        name = self.names[place]
        return columns.is_fact(name) or (self.reading.score_column == NONE and plain(name) in columns.SCORE)

    def _kind(self, place: int) -> str:
        """Return what the cells of a column are: "answer", "count", "fraction", "partly", "text", "list" or "empty"."""
        if not self.is_text(place):
            return "list"
        texts = self.filled(place)
        if not texts:
            return "empty"
        states = states_of(self.reading)
        known = [text.lower() in states or text in MINUS for text in texts]
        if all(known):
            return "answer"
        if any(text.startswith("-") for text in texts) and sum(known) >= HALF * len(texts) and len(set(texts)) <= FEW:
            return "partly"  # such as -9 for what is missing
        if all(is_whole_number(text) for text in texts):
            values = [int(text.removesuffix(".0")) for text in texts]
            return "count" if min(values) <= 1 and max(values) <= MOST else "number"
        numbers = [number(text) for text in texts]
        if all(one is not None for one in numbers):
            return "fraction" if all(0 <= (one or 0) <= 1 for one in numbers) else "number"
        return "partly" if sum(known) >= HALF * len(texts) else "text"

    def _ask_counts(self, counts: Sequence[int]) -> None:
        if counts:
            listed = in_words(self.names[place] for place in counts)
            self.decide(
                "numbers",
                COUNTS,
                f"the cells of {listed} are whole numbers, also 2 and more: 1 and more is present, and 0 absent "
                f"({COUNTS}) or unknown ({COUNTS_ONLY}); or the numbers are facts of the images (facts)",
                False,
                (COUNTS_ONLY, FACTS),
            )

    def _ask_doubtful(self, answers: Sequence[int]) -> None:
        """Ask about columns with the name of a fact and cells like answers."""
        doubtful = [place for place in answers if plain(self.names[place]) in columns.FACTS_OR_CLASSES]
        if doubtful:
            listed = in_words(self.names[place] for place in doubtful)
            rest = ",".join(self.names[place] for place in answers if place not in doubtful)
            every = ",".join(self.names[place] for place in answers)
            why = f"{listed} hold answers as the columns of classes do, but have the names of facts"
            self.decide("class_columns", every, why, False, (rest or NONE,))

    def _ask_partly(self, free: Sequence[int], kinds: Mapping[int, str]) -> list[int]:
        """Ask about words in columns that hold answers otherwise, and return these columns."""
        asked: list[int] = []
        for place in free:
            if kinds[place] != "partly" or self._fact(place):
                continue
            states = states_of(self.reading)
            strange = list(dict.fromkeys(text for text in self.filled(place) if text.lower() not in states))
            why = (
                f"`{self.names[place]}` is an answer in most rows, and {in_words(strange)} in the others: say "
                "what that means, by --present, --absent, --unsure or --unknown"
            )
            self.decided.append(Decided("unknown", ",".join(strange[:20]), why, False))
            self.strange |= {word.lower() for word in strange}
            asked.append(place)
        return asked

    def _label_columns(self, free: Sequence[int], kinds: Mapping[int, str]) -> list[int]:
        """Return the columns of labels, by their names."""
        found: dict[str, list[int]] = {}
        for place in free:
            named = columns.label_number(self.names[place])
            if named and not self._ours(self.names[place]):
                found.setdefault(named[0], []).append(place)
        # A column that is called "label" and has yes or no in it is a class of this name; one with 0 and 1 may be that.
        for word, places in list(found.items()):
            if all(kinds[place] == "empty" for place in places) and len(found) > 1:
                del found[word]
        if not found:
            return []
        textual = [word for word, places in found.items() if any(kinds[place] in ("text", "list") for place in places)]
        words = textual or list(found)
        if len(words) > 1:
            shown = in_words(self.names[found[word][0]] for word in words)
            first = self.names[found[words[0]][0]]
            others = [self.names[found[word][0]] for word in words[1:]]
            self.decide("label_columns", first, f"{shown} could each name the classes", False, others)
        places = found[words[0]]
        if not textual and self.reading.numbers != IDS:
            return self._numbered(places, kinds)
        return places

    def _numbered(self, places: Sequence[int], kinds: Mapping[int, str]) -> list[int]:
        """Return the columns of labels where the cells are numbers or answers, which has to be asked."""
        name = self.names[places[0]]
        texts = [text for place in places for text in self.filled(place)]
        if not texts:
            return list(places)
        if all(is_whole_number(text) for text in texts):
            if self.reading.numbers == FACTS:
                return []
            known = bool(self.class_names) and all(
                int(text.removesuffix(".0")) < len(self.class_names) for text in texts
            )
            if known:
                why = f"`{name}` holds numbers of classes, whose names are in the list beside the table"
            else:
                why = f"`{name}` holds numbers: ids of classes, which no list beside the table names ({IDS}), or facts"
            self.decide("numbers", IDS, why, known, () if known else (FACTS,))
            return list(places)
        if kinds[places[0]] == "answer":
            why = f"`{name}` holds answers such as {texts[0]!r}: it is a class of this name, or names classes"
            self.decide("class_columns", name, why, False)
            return []
        return list(places)

    def _labels_or_classes(
        self, labels: list[int], answers: list[int]
    ) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return columns of labels, or of classes where both are there and say the same."""
        answers = [
            place
            for place in answers
            if plain(self.names[place]) not in columns.FACTS_OR_CLASSES and self.filled(place)
        ]
        if not answers:
            return labels, [], [], []
        named = {plain(text) for place in labels for text in self.filled(place)}
        if named <= {plain(self.names[place]) for place in answers} | EMPTY_WORDS:
            return [], answers, [], []
        listed = in_words(self.names[place] for place in answers)
        why = f"`{self.names[labels[0]]}` names classes, but {listed} hold answers too; they are left out as facts"
        self.decide("label_columns", self.names[labels[0]], why, False, (NONE,))
        return labels, [], [], []

    def _guessed_label_column(self, free: Sequence[int], kinds: Mapping[int, str]) -> list[int]:
        """Return a column of text whose cells repeat, as a question; [] without one."""
        likely = [
            place
            for place in free
            if kinds[place] == "list"
            or (kinds[place] == "text" and not self._fact(place) and columns.share_of_images(self.cells[place]) < SURE)
        ]
        likely = [place for place in likely if plain(self.names[place]) not in columns.FACTS_OR_CLASSES]
        if not likely:
            return []
        shown = in_words(self.names[place] for place in likely)
        others = [*(self.names[place] for place in likely[1:]), NONE]
        self.decide(
            "label_columns",
            self.names[likely[0]],
            f"no column is called label; {shown} may name classes",
            False,
            others,
        )
        return likely[:1]

    def _say_facts(self, found: Columns) -> None:
        if kept := [self.names[place] for place in found.facts if self.names[place]]:
            self.said.append(f"columns that are facts of images, not classes: {', '.join(kept[:20])}")
        boxes = [name for name in self.names if plain(name) in columns.BOX]
        if boxes:
            self.said.append(f"boxes are not read ({', '.join(boxes[:6])}): a class with a box is present")

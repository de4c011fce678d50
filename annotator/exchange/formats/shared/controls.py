"""An annotation tool's controls (questions with choices) as classes.

The choices of a single control are the classes. With several controls, a class is control and choice, such
as "size: large". A yes/no control is itself a class.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.reading.cell_words import EMPTY_WORDS, build_state_words, normalize_word, quote_words
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.records import ABSENT, PRESENT, STATES

BARE_MODE, PREFIXED_MODE, STATE_MODE, FACT_MODE = "bare", "named", "state", "fact"
MAX_CHOICES = 10_000  # different choices of a control
MAX_CHOICE_CHARS = 100  # letters of a choice; longer ones are texts that somebody wrote
MAX_DISTINCT_TEXTS = 20  # different texts that may well be choices
YES_NO_WORDS = frozenset("yes no true false present absent".split())
GENERIC_NAMES = frozenset(
    "choice choices label labels class classes tag tags category categories answer image value".split()
)
"""Names of controls that say nothing about a class."""


@dataclass
class InterpretedChoices:
    """The meaning of the choices for one image."""

    # unique (class, state)
    labels: list[tuple[str, int]] = field(default_factory=list)
    # choices by control that is not a class
    facts: dict[str, str] = field(default_factory=dict)
    # A choice means "no class"
    is_nothing: bool = False


class Controls:
    """An interpreter of a source's controls.

    Call `count_choices` for all images, `interpret_controls` once, then `interpret_choices` per image.

    Args:
        own: Controls `present`, `absent`, `unsure` of own exports, whose choices are classes.
    """

    def __init__(self, options: ReadingOptions, own: Sequence[str] = ()):
        self._options, self._own = options, own
        self._choices: dict[str, Counter[str]] = {}
        self._regions: dict[str, None] = {}  # words of boxes and regions
        self._certain: set[str] = set()
        self._modes: dict[str, str] = {}
        self._states = build_state_words(options)
        self._nothing: frozenset[str] = frozenset()
        self.interpretations: list[Interpretation] = []
        self.sentences: list[str] = []

    def count_choices(self, control: str, choices: Iterable[str], is_certain: bool = True) -> None:
        """Count the choices in one control for an image. `is_certain` means that they cannot be free text."""
        counts = self._choices.setdefault(control, Counter())
        for choice in choices:
            if choice in counts or len(counts) < MAX_CHOICES:
                counts[choice] += 1
        if is_certain:
            self._certain.add(control)

    def count_regions(self, words: Iterable[str]) -> None:
        """Add the labels of an image's boxes and regions, which are always classes."""
        if len(self._regions) < MAX_CHOICES:
            self._regions |= dict.fromkeys(words)

    def interpret_controls(self, noun: str, are_all: bool = True) -> None:
        """Decide the meaning of each control. Raises AnnotatorError for options that name a missing one.

        Args:
            noun: Word for a control in messages.
            are_all: False if other fields may be among them.
        """
        controls = [name for name in self._choices if name not in self._own]
        told = self._options.class_columns
        labels, states = self._find_named_controls("--label-column", self._options.label_columns, controls, noun), []
        if labels is None:
            states = self._find_named_controls("--class-columns", told, controls, noun)
            self._choose_modes(controls, states, noun, are_all)
        else:
            states = [name for name in controls if self._is_yes_no(name) and name not in labels]
            self._modes = dict.fromkeys(controls, FACT_MODE) | dict.fromkeys(states, STATE_MODE)
            self._modes |= dict.fromkeys(labels, PREFIXED_MODE if len(labels) > 1 else BARE_MODE)
        self._choose_empty_words()

    def _find_named_controls(
        self, option: str, names: Sequence[str] | None, controls: list[str], noun: str
    ) -> list[str] | None:
        if names is None:
            return None
        for name in names:
            if name not in self._choices and name != NONE_VALUE:
                raise AnnotatorError(f"{option} {name}: there is no such {noun}. {did_you_mean(name, controls)}")
        return [name for name in names if name != NONE_VALUE]

    def _choose_modes(self, controls: list[str], told: list[str] | None, noun: str, are_all: bool) -> None:
        states = [name for name in controls if self._is_yes_no(name)] if told is None else told
        texts = [name for name in controls if name not in states and self._is_free_text(name)]
        labels = [name for name in controls if name not in (*states, *texts)]
        unclear = [name for name in labels if not are_all and name not in self._certain]
        is_sure = told is not None or not unclear or len(labels) + len(states) == 1
        if texts and not labels and not states:
            labels, texts, is_sure = texts, [], False
        self._modes = dict.fromkeys(texts, FACT_MODE) | dict.fromkeys(states, STATE_MODE)
        is_alike = not self._regions or any(word in self._regions for name in labels for word in self._choices[name])
        is_alone = len(labels) == 1 and (is_alike or bool(states))
        self._modes |= dict.fromkeys(labels, BARE_MODE if is_alone else PREFIXED_MODE)
        if texts:
            self.sentences.append(f"{quote_words(texts)} holds texts, which are facts of the image.")
        # One decision at most, because a person can say --label-column or --class-columns, not both.
        if states and told is None:
            first = states[0]
            why = (
                f"the choices of {quote_words(states)} are yes and no: the {noun} is the class, present or absent. If "
                f"the choices are the classes: --label-column {first}"
            )
            if is_sure:
                is_telling = len(states) > 1 or normalize_word(first) not in GENERIC_NAMES
                self.interpretations.append(Interpretation("class_columns", ",".join(states), why, is_telling))
            else:
                self.sentences.append(f"{why[0].upper()}{why[1:]}.")
        if len(labels) > 1 or not is_sure:
            example = next((f"{name}: {next(iter(self._choices[name]))}" for name in labels), "")
            why = f"{quote_words(labels)} have the labels: a class is {noun} and choice, such as `{example}`"
            why = why if len(labels) > 1 else f"{quote_words(labels)} has the labels, or texts that are none"
            why += f". With one {noun} (--label-column), its choices are the classes, and those of others are facts"
            if is_sure and states:
                self.sentences.append(f"{why}.")
            else:
                others = labels if len(labels) > 1 else ()
                self.interpretations.append(Interpretation("label_columns", ",".join(labels), why, is_sure, others))
        elif labels and self._modes[labels[0]] == PREFIXED_MODE:
            self.sentences.append(
                f"The choices of {quote_words(labels)} are classes beside those of the boxes and regions."
            )

    def _choose_empty_words(self) -> None:
        told = self._options.empty_label
        if told is not None:
            self._nothing = frozenset(normalize_word(word) for word in told if word != NONE_VALUE)
            return
        choices = [
            word
            for name, words in self._choices.items()
            if self._modes.get(name) in (BARE_MODE, PREFIXED_MODE)
            for word in words
        ]
        if words := dict.fromkeys(word for word in choices if normalize_word(word) in EMPTY_WORDS):
            why = (
                f"{quote_words(words)} may say that none of the classes is on the image (all are then absent), or be a "
                f"class of this name ({NONE_VALUE})"
            )
            self.interpretations.append(Interpretation("empty_label", ",".join(words), why, False, (NONE_VALUE,)))
            self._nothing = frozenset(map(normalize_word, words))

    def list_class_names(self) -> Iterator[str]:
        """Yield the names of boxes and regions, and the choices that are class names themselves."""
        yield from self._regions
        for control, words in self._choices.items():
            if self._modes.get(control) == BARE_MODE:
                yield from (word for word in words if normalize_word(word) not in self._nothing)

    def _is_yes_no(self, name: str) -> bool:
        words = {word.strip().lower() for word in self._choices[name]}
        others = {word for word in words - YES_NO_WORDS if self._states.get(word, PRESENT) in (PRESENT, ABSENT)}
        return bool(words & YES_NO_WORDS) and not others

    def _is_free_text(self, name: str) -> bool:
        if name in self._certain:
            return False
        counts = self._choices[name]
        return any(len(word) > MAX_CHOICE_CHARS for word in counts) or len(counts) > max(
            MAX_DISTINCT_TEXTS, counts.total() // 2
        )

    def interpret_choices(self, choices: Iterable[tuple[str, Sequence[str]]]) -> InterpretedChoices:
        """Return the meaning of an image's (control, choices) pairs. Raises ValueError for invalid words."""
        found = InterpretedChoices()
        labels: dict[tuple[str, int], None] = {}
        for control, words in choices:
            mode = self._modes.get(control, BARE_MODE)
            if mode == FACT_MODE:
                found.facts[control] = ", ".join(words)
            for word in words if mode != FACT_MODE else ():
                if mode == STATE_MODE:
                    key = word.strip().lower()
                    if key not in self._states:
                        raise ValueError(f"{word!r:.100} of {control!r:.100} is no word for present, absent or unsure")
                    if (state := self._states[key]) is not None:
                        labels[control, state] = None
                elif normalize_word(word) in self._nothing and control not in self._own:
                    found.is_nothing = True
                else:
                    name = f"{control}: {word}" if mode == PREFIXED_MODE else word
                    labels[name, STATES[control] if control in self._own else PRESENT] = None
        found.labels = list(labels)
        found.is_nothing &= not any(state == PRESENT for _, state in found.labels)
        return found

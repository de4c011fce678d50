"""Simulated projects with known truth, from the first label to the last audit answer.

People label likely cells, a model scores the rest well or badly, some cells are auto-accepted, an audit is drawn,
ordinary work answers some of its cells, people answer the others, and give every cell answered "present" a second look.
Samples and counts are those of the library (spmll/statistics).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from spmll.labels import ABSENT, PRESENT
from spmll.statistics.allowed_mistakes import RepeatedAnswers, allocate_second_looks
from spmll.statistics.certified_recall import LabelTotals, Strata, count_strata
from spmll.statistics.stratified_sampling import (
    ACCEPTED_PRESENT,
    UNKNOWN_CELL,
    DrawnSample,
    draw_sample,
    find_usable_cells,
)

OPEN_STATE, DECIDED_CELL = 2, -1
MIN_FILL_PROBABILITY = 0.97  # probability from which a model fills in, where it does
RELABEL_SHARE = 0.1  # labeled cells among those that an audit asks for, half of them present
SECOND_LOOK_SHARE = 0.2  # present labels of rare classes among those that an audit asks for, at most
SECOND_LOOK_SHARE = 0.2  # present labels of rare classes that an audit asks for, at most
ANSWERS_PER_LOOK = 10


@dataclass(frozen=True)
class ProjectKind:
    """The properties of one kind of simulated project."""

    # the shares of the images that show a class, from the rarest class to the most common
    shares: tuple[float, float]
    # distance between scores of present and absent cells, in standard deviations. Negative: worse than chance
    model: float
    # the share of the cells that people decide before each audit, likely ones first
    decided_share: float
    # the share of the cells that ordinary work decides between drawing and answering an audit
    share_since_audit: float = 0.05
    # whether likely cells are auto-accepted before an audit is drawn
    has_auto_accepted: bool = False
    # the number of audits, with work in between
    audits: int = 1
    # audit cells per class
    cells: int = 40
    images: int = 1500
    classes: int = 4
    # images that show each class, in place of `shares`
    positives: int = 0
    # the share of positives that the model scores like absent cells
    hidden_share: float = 0.0
    # labels of each state that each audit asks again. None: RELABEL_SHARE of the audit
    repeats: int | None = None


RARE_SHARES, COMMON_SHARES, ALL_SHARES = (0.003, 0.02), (0.1, 0.5), (0.005, 0.5)
PROJECT_KINDS = {
    "rare, early, good model": ProjectKind(RARE_SHARES, 3.0, 0.02),
    "rare, late, bad model": ProjectKind(RARE_SHARES, 0.3, 0.6),
    "rare, worse than chance": ProjectKind(RARE_SHARES, -1.5, 0.1),
    "common, early, good model": ProjectKind(COMMON_SHARES, 2.5, 0.02),
    "common, early, bad model": ProjectKind(COMMON_SHARES, 0.3, 0.02),
    "common, late, good model": ProjectKind(COMMON_SHARES, 2.5, 0.6),
    "common, late, 600 audit answers": ProjectKind(COMMON_SHARES, 2.5, 0.8, cells=150),
    "common, worse than chance": ProjectKind(COMMON_SHARES, -1.5, 0.1),
    "few images": ProjectKind(ALL_SHARES, 2.0, 0.3, images=160, cells=30),
    "many classes, three positives each": ProjectKind(RARE_SHARES, 2.0, 0.5, images=300, classes=12, positives=3),
    "a fifth hidden from the model": ProjectKind(ALL_SHARES, 2.5, 0.4, hidden_share=0.2),
    "auto-accepted": ProjectKind(ALL_SHARES, 2.5, 0.1, has_auto_accepted=True),
    "three audits": ProjectKind(ALL_SHARES, 2.0, 0.05, audits=3),
    "400 labels asked again": ProjectKind(COMMON_SHARES, 2.5, 0.6, repeats=200),
}


@dataclass(frozen=True, eq=False)
class ProjectLook:
    """A project's labels after some audit answers, as the library counts them."""

    # True recall per class, then over all, (C + 1,). Nan without positives
    recall: np.ndarray
    # strata of audits answered completely, class by class
    strata: Strata
    # strata of all audits, of which answers count up to the first gap
    answered: Strata
    labels: LabelTotals
    # absent, open: cells labeled absent, and cells neither labeled nor accepted, (C,)
    absent: np.ndarray
    open: np.ndarray
    repeats: RepeatedAnswers


class ErringProject:
    """A simulated project in which each answer is wrong with probability `mistake_share`."""

    def __init__(self, rng: np.random.Generator, kind: ProjectKind, mistake_share: float):
        self.rng, self.kind, self.mistake_share = rng, kind, mistake_share
        self.rates = np.exp(rng.uniform(*np.log(kind.shares), size=kind.classes))
        self.truth = rng.random((kind.images, kind.classes)) < self.rates
        if kind.positives:
            self.truth = rng.random(self.truth.shape).argsort(0) < kind.positives
        self.visible = self.truth & (rng.random(self.truth.shape) >= kind.hidden_share)
        self.states = np.full(self.truth.shape, OPEN_STATE)
        self.accepted, self.confirmed = np.zeros((2, *self.truth.shape), bool)
        self.repeats = RepeatedAnswers()
        self._parts: list[tuple[int, int, DrawnSample, np.ndarray]] = []

    def answer_audits(self) -> Iterator[ProjectLook]:
        """Work and answer the audits, and yield a look after every ANSWERS_PER_LOOK answers and after each audit."""
        for audit in range(self.kind.audits):
            said = self._draw_answers()
            scores = draw_scores(self.rng, self.visible, self.rates, self.kind.model)
            decide_cells(self.rng, self.states, said, scores, self.kind.decided_share)
            if self.kind.has_auto_accepted:
                self.accepted = (scores >= MIN_FILL_PROBABILITY) & (self.states == OPEN_STATE)
            relabels = self._draw_relabels()
            doubtful = self._draw_doubtful(relabels)
            asked = []
            for column in range(self.kind.classes):
                drawn = draw_class_audit(
                    self.rng, self.states[:, column], self.accepted[:, column], scores[:, column], self.kind.cells
                )
                self._parts.append((audit, column, drawn, np.zeros(len(drawn.rows), bool)))
                asked += [
                    (int(row), column)
                    for row in self.rng.permutation([*drawn.rows, *relabels[column], *doubtful[column]])
                ]
            scores = draw_scores(self.rng, self.visible, self.rates, self.kind.model)
            decide_cells(self.rng, self.states, self._draw_answers(), scores, self.kind.share_since_audit)
            yield from self._ask(asked, *(
                {(row, column) for column, rows in enumerate(chosen) for row in rows.tolist()}
                for chosen in (relabels, doubtful)
            ))  # fmt: skip

    def _ask(
        self, asked: list[tuple[int, int]], relabels: set[tuple[int, int]], doubtful: set[tuple[int, int]]
    ) -> Iterator[ProjectLook]:
        """Ask for the cells of an audit, then once more for those first answered "present"."""
        looked: list[tuple[int, int]] = []
        for number, cell in enumerate(self._iterate_questions(asked, looked), 1):
            is_first_look = number <= len(asked) and cell not in relabels and cell not in doubtful
            if not is_first_look or self.states[cell] == OPEN_STATE:
                answer = bool(self.truth[cell]) != (self.rng.random() < self.mistake_share)
                if cell in relabels:
                    self._count_repeat(bool(self.states[cell] == PRESENT), answer)
                self.confirmed[cell] = answer and self.states[cell] == PRESENT
                self.states[cell] = PRESENT if answer else ABSENT
                for _, column, drawn, in_audit in self._parts[-self.kind.classes :]:
                    in_audit |= (column == cell[1]) & (drawn.rows == cell[0])
            if is_first_look and self.states[cell] == PRESENT:
                looked.append(cell)
            if number % ANSWERS_PER_LOOK == 0 or number == len(asked) + len(looked):
                yield self._look()

    def _iterate_questions(
        self, asked: list[tuple[int, int]], looked: list[tuple[int, int]]
    ) -> Iterator[tuple[int, int]]:
        yield from asked
        yield from looked  # filled while the others are answered

    def _count_repeat(self, was_present: bool, answer: bool) -> None:
        counts = self.repeats
        self.repeats = (
            replace(counts, present=counts.present + 1, mistaken=counts.mistaken + (not answer))
            if was_present
            else replace(counts, absent=counts.absent + 1, missed=counts.missed + answer)
        )

    def _look(self) -> ProjectLook:
        filled = self.accepted & (self.states == OPEN_STATE)
        whole, answered = [], []
        looks = np.zeros(self.kind.classes, np.int64)
        for audit, column, drawn, in_audit in self._parts:
            states, accepted = self.states[:, column], self.accepted[:, column]
            counted = find_counted_cells(states, drawn, in_audit)
            is_whole = bool((states[drawn.rows] != OPEN_STATE).all())
            looks[column] += is_whole
            for strata, used in ((whole, np.full(len(counted), is_whole)), (answered, counted)):
                counts = count_strata(drawn.strata, states, accepted, drawn.rows, used)
                many = len(counts["code"])
                strata.append(counts | {"of_class": np.full(many, column), "audit": np.full(many, audit)})
        waits = np.zeros(self.kind.classes, bool)
        for _, column, drawn, _ in self._parts:
            rows = drawn.rows[self.states[drawn.rows, column] == PRESENT]
            waits[column] |= not self.confirmed[rows, column].all()
        none = np.zeros(self.kind.classes, int)
        labels = LabelTotals(
            (self.states == PRESENT).sum(0), filled.sum(0), none, np.full(self.kind.classes, np.nan), none, none,
            relabeled=self.repeats.present, relabeled_wrong=self.repeats.mistaken,
            confirmed=(self.confirmed & (self.states == PRESENT)).sum(0), is_confirmed=~waits,
            looks=np.append(looks, looks.max()),
        )  # fmt: skip
        right, positives = (
            np.append(cells, cells.sum())
            for cells in ((((self.states == PRESENT) | filled) & self.truth).sum(0), self.truth.sum(0))
        )
        recall = np.where(positives > 0, right / np.maximum(positives, 1), np.nan)
        open_ = ((self.states == OPEN_STATE) & ~filled).sum(0)
        absent = (self.states == ABSENT).sum(0)
        return ProjectLook(recall, join_strata(whole), join_strata(answered), labels, absent, open_, self.repeats)

    def _draw_answers(self) -> np.ndarray:
        return self.truth != (self.rng.random(self.truth.shape) < self.mistake_share)

    def _draw_relabels(self) -> list[np.ndarray]:
        """Draw labeled cells of both states from all classes together. Returns rows per class."""
        usual = round(RELABEL_SHARE / 2 * self.kind.cells * self.kind.classes)
        drawn = []
        for state in (PRESENT, ABSENT):
            cells = np.argwhere(self.states == state)
            many = min(usual if self.kind.repeats is None else self.kind.repeats, len(cells))
            drawn.append(cells[self.rng.choice(len(cells), many, replace=False)])
        return self._split_by_class(np.concatenate(drawn))

    def _draw_doubtful(self, relabels: list[np.ndarray]) -> list[np.ndarray]:
        """Draw the present cells of rare classes that get a second look. Returns rows per class."""
        left = (self.states == PRESENT) & ~self.confirmed
        for column, rows in enumerate(relabels):
            left[rows, column] = False
        most = round(SECOND_LOOK_SHARE * self.kind.cells * self.kind.classes)
        many = allocate_second_looks(left.sum(0), (self.states == ABSENT).sum(0), most)
        return [
            self.rng.permutation(np.flatnonzero(left[:, column]))[: many[column]] for column in range(self.kind.classes)
        ]

    def _split_by_class(self, cells: np.ndarray) -> list[np.ndarray]:
        return [cells[cells[:, 1] == column, 0] for column in range(self.kind.classes)]


def draw_class_audit(
    rng: np.random.Generator, states: np.ndarray, accepted: np.ndarray, scores: np.ndarray, cells: int
) -> DrawnSample:
    """Draw the audit of one class from its undecided cells."""
    return draw_sample(
        np.where(states != OPEN_STATE, DECIDED_CELL, np.where(accepted, ACCEPTED_PRESENT, UNKNOWN_CELL)),
        scores,
        cells,
        rng,
    )


def find_counted_cells(states: np.ndarray, drawn: DrawnSample, in_audit: np.ndarray) -> np.ndarray:
    """Return which sampled cells of a class may be counted while others are open, (n,) bool."""
    answered = states[drawn.rows] != OPEN_STATE
    result = np.zeros(len(drawn.rows), bool)
    for code in np.unique(drawn.strata[drawn.rows]):
        of = np.flatnonzero(drawn.strata[drawn.rows] == code)
        result[of] = find_usable_cells(of, answered[of], in_audit[of])
    return result


def join_strata(parts: list[dict[str, np.ndarray]]) -> Strata:
    """Return the strata of all classes and audits."""
    return Strata(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def draw_scores(rng: np.random.Generator, visible: np.ndarray, rates: np.ndarray, separation: float) -> np.ndarray:
    """Draw a model's probabilities, (N, C): calibrated, or reversed where `separation` is negative."""
    seen = rng.normal(size=visible.shape) + separation * visible
    logits = np.abs(separation) * (seen if separation > 0 else -seen) - separation**2 / 2 + np.log(rates / (1 - rates))
    return 1 / (1 + np.exp(-logits))


def decide_cells(
    rng: np.random.Generator,
    states: np.ndarray,
    answers: np.ndarray,
    scores: np.ndarray,
    share: float,
    event_of: np.ndarray | None = None,
) -> None:
    """Decide open cells in `states` as ordinary work does: 70% likely cells of each class, the rest at random.

    With events, all images of an event are decided together, for about as many cells.
    """
    for column in range(states.shape[1]):
        open_ = np.flatnonzero(states[:, column] == OPEN_STATE)
        many = min(round(share * len(states)), len(open_))
        likely = open_[np.argsort(-scores[open_, column])][: round(0.7 * many)]
        rest = rng.permutation(np.setdiff1d(open_, likely))[: many - len(likely)]
        rows = np.concatenate([likely, rest])
        if event_of is not None and len(rows):
            size = len(event_of) / (event_of[-1] + 1)
            some = np.concatenate([part[: round(len(part) / size)] for part in (likely, rest)])
            rows = open_[np.isin(event_of[open_], event_of[some])]
        states[rows, column] = np.where(answers[rows, column], PRESENT, ABSENT)

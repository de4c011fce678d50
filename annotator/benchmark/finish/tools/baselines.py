"""Baseline tools: a form per image, random order, one-class grids, and most uncertain images first."""

from collections.abc import Iterable

import numpy as np
from typing_extensions import override

from annotator.benchmark.finish.protocol import Answer, Question, Task
from annotator.benchmark.finish.tools.binomial_audit import TILES_PER_GRID, BinomialAudit
from annotator.benchmark.finish.tools.engine import Engine, count_open
from annotator.snapshot.preset_threshold import MIN_PRESET_PROBABILITY
from annotator.store.labels.audits import OPEN
from spmll.query_strategies import order_candidates

IMAGES_PER_ORDER = 10  # images taken from an order before the model is brought up to date
FIRST_IMAGES_SHARE = 0.05  # share of the images that are answered as a whole before grids begin,
MIN_FIRST_IMAGES = 20  # and how many at least

SAMPLE_CERTIFICATION = (
    "a random sample of the open pairs whose exact binomial bound leaves enough recall (each audit of a project halves "
    "the allowed error), or every pair is answered; answers are taken as right"
)


class FormTool:
    """A tool with one empty form per image, in random order."""

    certifies_by = "every pair is answered; answers are taken as right"

    def start(self, task: Task) -> None:
        self._left = np.random.default_rng([task.seed, 5]).permutation(len(task.images)).tolist()
        self._classes = tuple(range(len(task.classes)))
        self._present: list[tuple[int, int]] = []

    def ask(self) -> Question | None:
        return Question("image", (self._left.pop(),), self._classes) if self._left else None

    def answer(self, question: Question, answer: Answer) -> None:
        self._present += [cell for cell, present in zip(question.cells, answer.present, strict=True) if present]

    def labels(self) -> Iterable[tuple[int, int]]:
        return self._present

    def certifies(self) -> bool:
        return not self._left

    def close(self) -> None:
        """Release resources."""


class _WithModel:
    certifies_by = SAMPLE_CERTIFICATION

    def start(self, task: Task) -> None:
        self.engine = Engine(task)
        self.rng = np.random.default_rng([task.seed, 6])
        self.audit = BinomialAudit(task.recall, task.confidence, self.rng)
        self._source = "suggestion"
        self._shown: list[float | None] = []

    def ask(self) -> Question | None:
        labels, chances = self.engine.load_labels(), self.engine.load_chances()
        if question := self.audit.next_question(labels, chances):
            self._source = "audit"
        elif question := self.choose_question(labels, chances):
            self._source = "grid" if question.kind == "grid" else "suggestion"
        else:
            return None
        shown = [chances[cell] for cell in question.cells] if chances is not None else []
        self._shown = [None if np.isnan(chance) else float(chance) for chance in shown]
        return question

    def choose_question(self, labels: np.ndarray, chances: np.ndarray | None) -> Question | None:
        raise NotImplementedError

    def answer(self, question: Question, answer: Answer) -> None:
        self.engine.record_answer(question, answer, self._source, self._shown)

    def labels(self) -> Iterable[tuple[int, int]]:
        return self.engine.list_present()

    def certifies(self) -> bool:
        return self.audit.certified or not count_open(self.engine.load_labels())

    def close(self) -> None:
        if engine := getattr(self, "engine", None):
            engine.close()


class RandomTool(_WithModel):
    """A tool that asks whole images in random order, with probable classes preset as present."""

    strategy = "random"

    @override
    def start(self, task: Task) -> None:
        super().start(task)
        self._next_rows: list[int] = []

    @override
    def choose_question(self, labels: np.ndarray, chances: np.ndarray | None) -> Question | None:
        if not self._next_rows:
            self.engine.keep_up()
            chances = self.engine.load_chances()
            self._next_rows = self._order_images(labels, chances)[:IMAGES_PER_ORDER]
        if not self._next_rows:
            return None
        row = self._next_rows.pop(0)
        columns = np.flatnonzero(labels[row] == OPEN)
        if not len(columns):  # an audit has answered the rest of it
            return self.choose_question(labels, chances)
        preset = (
            np.nan_to_num(chances[row, columns]) >= MIN_PRESET_PROBABILITY
            if chances is not None
            else np.zeros(len(columns), bool)
        )
        return Question("image", (row,), tuple(columns.tolist()), tuple(preset.tolist()))

    def _order_images(self, labels: np.ndarray, chances: np.ndarray | None) -> list[int]:
        left = np.flatnonzero((labels == OPEN).any(1))
        if not len(left) or chances is None or self.strategy == "random":
            return self.rng.permutation(left).tolist()
        known = np.where(labels == OPEN, 0, labels).astype(np.int8)
        return order_candidates(self.strategy, None, chances, known, left, self.rng).rows.tolist()


class UncertaintyTool(RandomTool):
    """A RandomTool that asks the most uncertain images first."""

    strategy = "uncertainty"


class GridsTool(RandomTool):
    """A tool that asks some whole images first, then always the one-class grid with most expected positives."""

    @override
    def choose_question(self, labels: np.ndarray, chances: np.ndarray | None) -> Question | None:
        untouched = (labels == OPEN).all(1).sum()
        seed = max(MIN_FIRST_IMAGES, round(FIRST_IMAGES_SHARE * len(labels)))
        if len(labels) - untouched < seed or chances is None:
            return super().choose_question(labels, chances)
        self.engine.keep_up()
        chances = self.engine.load_chances()
        assert chances is not None
        likely = np.where(labels == OPEN, np.nan_to_num(chances), -1.0)
        best = np.sort(likely, axis=0)[::-1][:TILES_PER_GRID]
        if not (labels == OPEN).any():
            return None
        column = int(np.argmax(np.maximum(best, 0).sum(0) + (best >= 0).any(0) * 1e-6))
        rows = np.argsort(-likely[:, column], kind="stable")[:TILES_PER_GRID]
        rows = rows[labels[rows, column] == OPEN]
        start = bool(likely[rows, column].mean() >= MIN_PRESET_PROBABILITY)
        return Question("grid", tuple(rows.tolist()), (column,), (start,) * len(rows))

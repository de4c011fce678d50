"""Our tool: questions from Autopilot, and the quality report as stopping rule.

An audit is drawn when the model expects the target recall, and again when much less is unanswered.
"""

import math
from collections.abc import Iterable

import numpy as np

from annotator.benchmark.finish.protocol import Answer, Question, Task
from annotator.benchmark.finish.tools.engine import ANNOTATOR_NAME, Engine, count_open
from annotator.quality import audit_sampling
from annotator.quality.certification import compute_certificate
from annotator.quality.shortfall import count_allowed_missing
from annotator.queues.autopilot import planner
from annotator.queues.autopilot.actions import Action
from annotator.queues.autopilot.complete_project import EXTRA_KINDS
from annotator.records import PRESENT, WantedActions
from annotator.snapshot.snapshot import read_snapshot
from annotator.store.labels.audits import OPEN
from spmll.statistics.bounds import compute_tail

LEASE_HOLDER = "bench"
MIN_OPEN_DROP_SHARE = 0.15  # another audit is drawn once so many fewer pairs are open than at the last one
ANSWERS_PER_CHECK = 5  # answers between two looks at the certificate, after an audit


class AutopilotTool:
    """A tool with Autopilot's questions and the quality report's stopping rule."""

    certifies_by = (
        "the certificate: the low end of its 95 % interval of recall, from random audits, if 1 answer in 50 is wrong; "
        "without that once nothing is unanswered"
    )

    def start(self, task: Task) -> None:
        self.task, self.engine = task, Engine(task)
        self._row_of = {image_id: row for row, image_id in enumerate(self.engine.image_ids.tolist())}
        self._column_of = {class_id: column for column, class_id in enumerate(self.engine.class_ids.tolist())}
        self._audit: list[tuple[Question, list[float | None], int | None]] = []
        self._last_open, self._audits, self._answers, self._certified = math.inf, 0, 0, False
        self._shown: tuple[str, list[float | None], int | None] = ("", [], None)

    def ask(self) -> Question | None:
        self.engine.keep_up()
        if not self._audit and not self._certified:
            self._queue_audit_cells(audit_sampling.load_cells_to_repeat(self.engine.db, ANNOTATOR_NAME))
            if not self._audit:
                self._draw_audit()
        if self._audit:
            question, chances, run = self._audit.pop(0)
            self._shown = ("audit", chances, run)
            return question
        items = planner.lease_next_actions(
            self.engine.db, WantedActions(LEASE_HOLDER, ANNOTATOR_NAME, (), 1, extras=EXTRA_KINDS)
        ).items
        return self._make_question(items[0]) if items else None

    def answer(self, question: Question, answer: Answer) -> None:
        source, chances, run = self._shown
        self.engine.record_answer(question, answer, source, chances, run)
        self._answers += 1
        finished = not count_open(self.engine.load_labels())
        if not self._audit and self._audits and self._answers % ANSWERS_PER_CHECK == 0:
            finished = finished or self._check_certificate()
        self._certified = self._certified or finished

    def labels(self) -> Iterable[tuple[int, int]]:
        return self.engine.list_present()

    def certifies(self) -> bool:
        return self._certified

    def close(self) -> None:
        if engine := getattr(self, "engine", None):
            engine.close()

    def _check_certificate(self) -> bool:
        overall = compute_certificate(self.engine.db, self.task.recall).overall
        measured = overall.precision.estimate is not None and not overall.precision.reason
        precise = not measured or (overall.precision.estimate or 0.0) >= self.task.precision
        recall = overall.recall_allowing
        return not recall.reason and recall.low >= self.task.recall and precise

    def _draw_audit(self) -> None:
        labels, chances = self.engine.load_labels(), self.engine.load_chances()
        is_open = labels == OPEN
        count = int(is_open.sum())
        if chances is None or not count or count > (1 - MIN_OPEN_DROP_SHARE) * self._last_open:
            return
        allowed = count_allowed_missing(int((labels == PRESENT).sum()), self.task.recall)
        expected = float(np.nan_to_num(chances, nan=1.0)[is_open].sum())
        if expected >= allowed:
            return
        # A sample of n without a positive leaves up to about -ln(tail) / n of the rest.
        tail = float(compute_tail(self._audits + 1))
        wanted = math.ceil(-math.log(tail) * count / (allowed - expected))
        size = min(wanted, audit_sampling.get_default_size(self.engine.db), count)
        audit_sampling.draw_audit(self.engine.db, size, seed=self.task.seed + self._audits)
        self._audits, self._last_open = self._audits + 1, count
        self._queue_audit_cells(audit_sampling.load_open_cells(self.engine.db))

    def _queue_audit_cells(self, asked: list[audit_sampling.OpenAuditCell]) -> None:
        waiting: dict[int, list[audit_sampling.OpenAuditCell]] = {}
        for cell in asked:
            waiting.setdefault(cell.class_id, []).append(cell)
        for class_id, cells in waiting.items():
            for start in range(0, len(cells), planner.AUDIT_TILES):
                tiles = cells[start : start + planner.AUDIT_TILES]
                rows = tuple(self._row_of[cell.image_id] for cell in tiles)
                question = Question("grid", rows, (self._column_of[class_id],))
                self._audit.append((question, [cell.score for cell in tiles], tiles[0].run_id))
        if self._audit:
            self._answers = -len(self._audit)  # the certificate is looked at when the last of them is answered

    def _make_question(self, action: Action) -> Question:
        if action.grid:
            tiles = action.grid.tiles
            self._shown = (action.source, [tile.probability for tile in tiles], action.grid.run_id)
            rows = tuple(self._row_of[tile.image.id] for tile in tiles)
            return Question(
                "grid", rows, (self._column_of[action.grid.class_id],), (action.grid.start == "yes",) * len(rows)
            )
        assert action.item is not None
        scores, row = dict(action.scores), self._row_of[action.item.image.id]
        answered = {label.class_id for label in action.item.labels}
        class_ids = list(scores) or [class_id for class_id in self._column_of if class_id not in answered]
        columns = tuple(self._column_of[class_id] for class_id in class_ids)
        if action.kind == "click":
            self._shown = ("click", [], None)
            return Question("click", (row,), columns)
        snapshot = read_snapshot(self.engine.db)
        chances = [scores.get(class_id) for class_id in class_ids]
        self._shown = (action.source, chances, snapshot.run.id if snapshot else None)
        return Question("image", (row,), columns, tuple(class_id in action.preset for class_id in class_ids))

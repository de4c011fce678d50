"""One simulated person at work on a real project."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from annotator.benchmark.effort.project_copy import ProjectCopy
from annotator.benchmark.simulated_people import Person, draw_seconds
from annotator.indexing import find_positions
from annotator.queues.event_tiles import applies_to_event
from annotator.records import ABSENT, PRESENT, Batch, Decision
from annotator.snapshot.time_model import DEFAULT_TIMES, TIME_PARTS, TimeModel
from annotator.store.events.event_answers import EventBatch
from annotator.store.labels import label_cells
from annotator.store.relations import declared_relations

ANNOTATOR_NAME = "Bench"
NO_OTHERS: Mapping[int, Sequence[int]] = {}


@dataclass
class Spent:
    """The effort of a person so far.

    `actions` counts presses of keys and buttons, `parts` the parts of the time model, such as tiles and changes.
    """

    actions: int = 0
    parts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(TIME_PARTS, 0.0))

    def compute_seconds(self, time_model: TimeModel) -> float:
        return sum(count * getattr(time_model, part) for part, count in self.parts.items())


class Session(ProjectCopy):
    """A project copy with a simulated annotator who knows its truth.

    Attributes:
        truth: (N, C) bool, by ascending image and class ids.
        time_model: Mean seconds per part, unknown to the project.
        relations: Class relations. Answers that they imply need no press.
        copied, miscopied: Number of answers copied within events, and of wrong ones.
    """

    def __init__(
        self,
        template: Path,
        folder: Path,
        truth: np.ndarray,
        person: Person,
        *,
        learns: bool,
        seed: int,
        times: TimeModel = DEFAULT_TIMES,
        varies: bool = False,
    ):
        """Copy the project. With `varies`, equal answers take different times."""
        super().__init__(template, folder, learns=learns, seed=seed)
        self.truth, self.person = truth, person
        self.spent, self.time_model = Spent(), times
        self.relations = declared_relations.load_relations(self.db)
        self.copied = self.miscopied = 0
        self._pace = np.random.default_rng([seed, 3]) if varies else None

    def answer_grid(
        self,
        class_id: int,
        image_ids: list[int],
        chances: list[float | None],
        run: int | None,
        start: bool,
        source: str = "grid",
        others: Mapping[int, Sequence[int]] = NO_OTHERS,
    ) -> None:
        """Answer a grid: one class on several images.

        Args:
            chances, run: Probabilities shown, and the id of the training that computed them.
            start: Tiles start as present.
            others: Image -> other images of its event, which get the same answer unless it contradicts the model.
        """
        rows, columns = self.find_rows(image_ids), np.full(len(image_ids), self.find_column(class_id))
        answers, presses = self.person.answer(rows, columns, np.full(len(rows), start))
        copies = []
        for front, chance, yes in zip(image_ids, chances, answers.tolist(), strict=True):
            if applies_to_event(chance or 0.0, yes):
                copies += [(other, class_id, PRESENT if yes else ABSENT, front) for other in others.get(front, ())]
        self._store_batch(
            source, image_ids, [class_id] * len(rows), answers, chances, run, presses, copies, tile=len(rows), begin=1
        )

    def answer_image(self, image_id: int, class_ids: list[int], preset: list[int], chances: list[float | None],
              run: int | None, source: str = "suggestion", others: Sequence[int] = ()) -> None:  # fmt: skip
        """Answer these classes of one image together, starting with `preset` present.

        Images of its event in `others` get the same answers, unless they look different.
        """
        columns = np.array([self.find_column(class_id) for class_id in class_ids])
        start = np.isin(class_ids, preset)
        answers, presses = self.person.answer(np.full(len(columns), self.find_row(image_id)), columns, start)
        checked = len(columns)
        if self.relations.made:  # what the others imply is shown as such: nobody presses for it, and it is not stored
            said = ~self._find_implied(class_ids, answers)
            presses = int((answers != start)[said].sum())
            answers, columns, places = answers[said], columns[said], np.flatnonzero(said).tolist()
            class_ids, chances = [class_ids[place] for place in places], [chances[place] for place in places]
        ids, states = [image_id] * len(columns), np.where(answers, PRESENT, ABSENT).tolist()
        copies, exceptions, known = [], 0, label_cells.load_answered_cells(self.db, others)
        for other in others:
            seen, _ = self.person.answer(np.full(len(columns), self.find_row(other)), columns, answers)
            if (seen != answers).any():
                exceptions += 1
                continue
            given = zip(class_ids, states, strict=True)
            copies += [(other, id_, state, image_id) for id_, state in given if id_ not in known.get(other, {})]
        parts = {"look": 1, "check": checked, "tile": len(others)}
        self._store_batch(source, ids, class_ids, answers, chances, run, presses + exceptions, copies, **parts)

    def click_image(self, image_id: int, open_ids: list[int] | None = None) -> None:
        """Name a class among `open_ids` (None for all) that an image shows, or else answer "nothing else here"."""
        open_ = np.ones(len(self.class_ids), bool) if open_ids is None else np.isin(self.class_ids, open_ids)
        named = self.person.name_one(self.find_row(image_id), open_)
        taken = self._draw_milliseconds(self._spend_actions(1, click=1))
        shared = {"annotator": ANNOTATOR_NAME, "source": "click", "image_id": image_id, "milliseconds": taken}
        if named is None:
            self.store_answers(Decision(_make_uuid(), "done", **shared))
        else:
            self.store_answers(
                Decision(_make_uuid(), "label", class_id=int(self.class_ids[named]), state=PRESENT, **shared)
            )

    def fill_form(self, image_id: int) -> None:
        """Tick all visible classes in a list and submit."""
        columns = np.arange(len(self.class_ids))
        nothing = np.zeros(len(columns), bool)
        answers, presses = self.person.answer(np.full(len(columns), self.find_row(image_id)), columns, nothing)
        if self.relations.made:
            answers = answers & ~self._find_implied(self.class_ids.tolist(), answers)
            presses = int(answers.sum())
        seconds = self._spend_actions(presses + 1, look=1, check=len(columns), change=presses, submit=1)
        shared = {"annotator": ANNOTATOR_NAME, "source": "click", "image_id": image_id}
        shared |= {"milliseconds": self._draw_milliseconds(seconds)}
        ticked = [
            Decision(_make_uuid(), "label", class_id=int(self.class_ids[column]), state=PRESENT, **shared)
            for column in np.flatnonzero(answers)
        ]
        self.store_answers(*ticked, Decision(_make_uuid(), "done", **shared))

    def answer_suggestions(self, image_id: int, class_ids: list[int], chances: list[float], run: int) -> None:
        """Answer suggestions one by one, then "nothing else here", as in Review."""
        columns = np.array([self.find_column(class_id) for class_id in class_ids])
        start = np.zeros(len(columns), bool)
        answers, _ = self.person.answer(np.full(len(columns), self.find_row(image_id)), columns, start)
        shared = {"annotator": ANNOTATOR_NAME, "source": "suggestion", "image_id": image_id, "run_id": run}
        answered = [
            Decision(_make_uuid(), "label", class_id=class_id, state=PRESENT if yes else ABSENT, score=chance, **shared)
            for class_id, chance, yes in zip(class_ids, chances, answers, strict=True)
        ]
        self.store_answers(*answered)
        self._spend_actions(len(columns) + 1, look=1, check=len(columns), change=len(columns), submit=1)

    def _find_implied(self, class_ids: list[int], answers: np.ndarray) -> np.ndarray:
        """Return which of n answers are already implied by present ones through class relations, (n,) bool."""
        states = dict(zip(class_ids, np.where(answers, PRESENT, ABSENT).tolist(), strict=True))
        present = [class_id for class_id in class_ids if states[class_id] == PRESENT]
        meant = {
            other
            for class_id in present
            for other in self.relations.compute_implied({class_id: PRESENT})
            if other != class_id
        }
        return np.array([class_id in meant for class_id in class_ids], bool)

    def _store_batch(self, source, image_ids, class_ids, answers, chances, run, presses, copies=(), **parts) -> None:
        seconds = self._spend_actions(presses + 1, change=presses, submit=1, **parts)
        states = np.where(answers, PRESENT, ABSENT).tolist()
        cells = list(zip(image_ids, class_ids, states, chances, strict=True))
        given = (_make_uuid(), ANNOTATOR_NAME, source, cells, run, self._draw_milliseconds(seconds))
        self.store_answers(EventBatch(*given, copies=copies) if copies else Batch(*given))
        if copies:
            image_ids, class_ids, states, _ = map(list, zip(*copies, strict=True))
            columns = find_positions(class_ids, self.class_ids)[0]
            self.copied += len(copies)
            self.miscopied += int(
                (self.truth[self.find_rows(image_ids), columns] != (np.array(states) == PRESENT)).sum()
            )

    def _spend_actions(self, actions: int, **parts: float) -> float:
        self.spent.actions += actions
        for part, count in parts.items():
            self.spent.parts[part] += count
        return sum(count * getattr(self.time_model, part) for part, count in parts.items())

    def _draw_milliseconds(self, seconds: float) -> int:
        return round(1000 * (seconds if self._pace is None else draw_seconds(self._pace, seconds)))


def _make_uuid() -> str:
    return str(uuid.uuid4())

"""A project that one of our tools works on, addressed by positions in the task."""

import hashlib
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annotator.benchmark.effort.effort_measurement import embed_images
from annotator.benchmark.effort.project_copy import ProjectCopy
from annotator.benchmark.finish.protocol import Answer, Question, Task
from annotator.errors import AnnotatorError
from annotator.exchange import project_setup
from annotator.records import ABSENT, PRESENT, Batch, Decision
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels.audits import OPEN
from annotator.store.pictures.files import escape_path

ANNOTATOR_NAME = "Bench"
SINGLE_DECISION_KINDS = ("check", "click")  # kinds whose answers are decisions of their own
READY_SUFFIX = "made"  # ending of a file beside the project: its images are analyzed


class Engine:
    """A project for one tool and person, addressed by the image and class indices of the task."""

    def __init__(self, task: Task):
        template = _get_template(task)
        self.project = ProjectCopy(template, task.work / f"copy-{uuid.uuid4().hex[:8]}", learns=True, seed=task.seed)
        self.db, self.chance = self.project.db, self.project.chance
        names = images.load_ids_by_name(self.db)
        folder = _find_common_folder(task)
        self.image_ids = np.array([names[escape_path(path.relative_to(folder).as_posix())] for path in task.images])
        self.class_ids = self.project.class_ids
        self._rows = self.project.find_rows(self.image_ids.tolist())

    def load_labels(self) -> np.ndarray:
        """Return (N, C) int8: PRESENT, ABSENT or audits.OPEN."""
        return self.project.load_labels()[self._rows]

    def list_present(self) -> list[tuple[int, int]]:
        """Return the (image, class) index pairs answered present."""
        return [(image, class_) for image, class_ in np.argwhere(self.load_labels() == PRESENT).tolist()]

    def load_chances(self) -> np.ndarray | None:
        """Return current probabilities, (N, C), nan for classes without a model, or None before the first training."""
        chances = self.project.load_chances()
        return None if chances is None else chances[self._rows]

    def keep_up(self) -> None:
        """Train or update the model whenever a worker would."""
        self.project.keep_up()

    def record_answer(
        self,
        question: Question,
        answer: Answer,
        source: str,
        chances: Sequence[float | None] = (),
        run: int | None = None,
    ) -> None:
        ids = [(int(self.image_ids[image]), int(self.class_ids[class_])) for image, class_ in question.cells]
        taken, shown = round(1000 * answer.seconds), chances or [None] * len(ids)
        if question.kind not in SINGLE_DECISION_KINDS:
            said = [
                (image_id, class_id, PRESENT if present else ABSENT, chance)
                for (image_id, class_id), present, chance in zip(ids, answer.present, shown, strict=True)
            ]
            self.project.store_answers(Batch(str(uuid.uuid4()), ANNOTATOR_NAME, source, said, run, taken))
            return
        shared = {"annotator": ANNOTATOR_NAME, "source": source, "milliseconds": taken}
        decided = [
            Decision(
                str(uuid.uuid4()),
                "label",
                image_id=image_id,
                class_id=class_id,
                state=PRESENT if present else ABSENT,
                **shared,
            )
            for (image_id, class_id), present in zip(ids, answer.present, strict=True)
            if present or (present is not None and question.kind != "click")
        ]
        nothing = Decision(str(uuid.uuid4()), "done", image_id=ids[0][0], **shared)
        self.project.store_answers(*(decided or [nothing]))

    def close(self) -> None:
        """Delete the project, but keep its embeddings."""
        self.project.close()


def count_open(labels: np.ndarray) -> int:
    return int((labels == OPEN).sum())


def _get_template(task: Task) -> Path:
    files = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in task.images]
    digest = hashlib.sha256(repr((files, task.classes)).encode()).hexdigest()[:12]
    template = task.work / f"project-{digest}"
    if (made := template.with_suffix(f".{READY_SUFFIX}")).exists():
        return template
    project_setup.set_up_project(template, images_folder=_find_common_folder(task))
    classes.add_classes(Database(template), [(name, "") for name in task.classes])
    embed_images(template)
    made.touch()
    return template


def _find_common_folder(task: Task) -> Path:
    try:
        return Path(os.path.commonpath([path.parent for path in task.images]))
    except ValueError as error:
        raise AnnotatorError(f"The images of {task.name} lie on several drives: {error}.") from error

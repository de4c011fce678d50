"""Trainings on a Ray cluster. Each is one call on one core.

Inputs are sent once. Results are stored locally as they arrive, so the same command resumes.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from annotator.benchmark.methods.cells import Cell, Trainings
from annotator.benchmark.scratch import print_progress
from annotator.cluster.connection import ClusterUse, connect_to_cluster
from annotator.cluster.task_runner import TaskMachine, TaskRunner
from annotator.errors import AnnotatorError
from spmll.linear.training import one_thread


class TrainingCluster:
    """A context manager that connects to the Ray cluster named by --on, or for "local" to none."""

    def __init__(self, cluster: str):
        self._use = ClusterUse(
            cluster,
            "annotator bench methods --on local",
            "What is finished is kept: the same command goes on from there.",
        )
        self._connection = ExitStack()
        self._ray: Any = None
        self._tasks: TaskRunner | None = None

    def __enter__(self) -> "TrainingCluster":
        """Connect to the cluster. Raises AnnotatorError if it cannot be used."""
        if self._use.cluster != "local":
            self._ray = self._connection.enter_context(connect_to_cluster(self._use))
        return self

    def __exit__(self, *error: object) -> None:
        for sentence in self._tasks.exclusion_sentences if self._tasks else ():
            print_progress(f"note: {sentence}")
        self._connection.close()

    def iterate_results(
        self, trainings: Trainings, cells: Sequence[Cell], places: Sequence[int]
    ) -> Iterator[tuple[int, dict]]:
        """Yield the place and result of each of these cells as they finish.

        Args:
            trainings: The same object at every call, sent once.
            places: Indices in `cells` to run.

        Raises:
            AnnotatorError: If the connection to the cluster is lost.
            ValueError: From training.
        """

        def get_cell(place: int, machine: TaskMachine) -> Cell:
            return cells[place]

        if self._tasks is None:
            self._tasks = TaskRunner(self._ray, self._use, run_training, trainings)
        with closing(self._tasks.iterate_results(places, get_cell)) as results:
            for done in results:
                if done is None:
                    continue
                if done.error is not None:
                    raise _translate_error(cells[done.key], done.machine, done.error)
                yield done.key, done.result


def run_training(trainings: Trainings, cell: Cell) -> dict:
    """Train one cell on a machine of the cluster, and return its result."""
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        return trainings.compute_result(cell, Path(folder) / "training")


def _translate_error(cell: Cell, machine: str, error: Exception) -> Exception:
    cause = getattr(error, "cause", None)  # what the function raised
    if isinstance(cause, (ValueError, AnnotatorError)):
        return cause
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return AnnotatorError(
        f"{cell.method} (share {cell.share:g}, seed {cell.seed}) could not be trained on {machine}: {lines[-1]}\n"
        "    --on local trains it on this machine."
    )

"""The trainings of a comparison on the machines of a Ray cluster: each is a call, and a lost one costs only itself.

Features, region codes and labels go into the cluster once. A training takes one core, and as many run at a time as
there are cores; results are written here as they come, so the same command goes on after whatever has ended it.
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
    """The cluster that --on names, connected for the duration of the context; with "local" there is none."""

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
        """Connect to the cluster.

        Raises:
            AnnotatorError: The cluster cannot be used.
        """
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
        """Yield the place of each of these cells and its result, as they finish.

        Args:
            trainings: The same object at every call; it is sent to the cluster once.
            cells: All trainings.
            places: The indices in `cells` of those to run.

        Raises:
            AnnotatorError: The cluster is gone.
            ValueError: As a training does.
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
    """Return the result of a training; runs on a machine of the cluster."""
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

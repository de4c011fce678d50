"""One training of a comparison of methods: its parameters and its result."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from annotator.benchmark.first_named_class import RANDOM_NAMING, Naming
from annotator.benchmark.methods.task import Choice, Task
from annotator.benchmark.methods.trainers import Train
from spmll.methods import METHODS

Tasks = dict[tuple[float, Naming], list[Task]]


@dataclass(frozen=True)
class Cell:
    """The parameters of one training: a "trial" to choose settings by validation mAP, or a "result" to report."""

    kind: str
    method: str
    share: float
    seed: int
    choice: Choice
    naming: Naming = RANDOM_NAMING

    @property
    def result_key(self) -> dict[str, Any]:
        """Return the parameters by which the result is stored."""
        what = {"method": self.method, "share": self.share, "seed": self.seed, "choice": asdict(self.choice)}
        return what | ({} if self.naming.kind == "random" else {"clicks": self.naming.label})

    @property
    def can_be_sent(self) -> bool:
        """Return whether the training reads only embeddings, no image files, so that it can run on a cluster."""
        return METHODS[self.method].reads in ("features", "regions")

    def describe_result(self, result: dict) -> str:
        of = f"share {self.share:g}" + ("" if self.naming.kind == "random" else f", {self.naming.label}")
        if self.kind == "trial":
            return f"{of}, trial: {self.method} has validation mAP {100 * result['val_map']:.1f}"
        on_test = f"test mAP {100 * result['test_map']:.1f}, " if "test_map" in result else ""
        hidden = f"hidden AP {100 * result['hidden_ap']:.1f}" if "hidden_ap" in result else "nothing is hidden"
        return f"{of}, seed {self.seed}: {self.method} has {on_test}{hidden}"


@dataclass(frozen=True, eq=False)
class Trainings:
    """The function that trains methods in a comparison, and its tasks by (share, naming): a draw of labels per seed."""

    train: Train
    tasks: Tasks

    def compute_result(self, cell: Cell, state: Path) -> dict:
        """Train, and return the figures of the result, for a trial only those that choose settings.

        Raises ValueError from training, except for trials, where refused settings score 0.
        """
        task = self.tasks[cell.share, cell.naming][cell.seed]
        try:
            trained = self.train(cell.method, cell.choice, task, cell.seed, state)
        except ValueError as error:
            if cell.kind == "trial" and cell.choice != Choice():
                return {"refused": str(error), "val_map": 0.0}
            raise
        result: dict[str, Any] = {"epoch": trained.epoch} | ({"val_map": trained.val_map} if task.validates else {})
        if trained.separations:
            result["separations"] = list(trained.separations)
        return result if cell.kind == "trial" else result | task.compute_figures(trained)

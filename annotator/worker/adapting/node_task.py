"""The inputs of the processes of a training on a cluster, and the progress that they report. It loads no networks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from annotator.store.images.file_addresses import ImageFiles
from annotator.store.pictures.bands import BandChoices

RESULT_FILE = "final.safetensors"


@dataclass(frozen=True, eq=False)
class AdaptationTask:
    """The inputs that all processes of a training receive.

    Attributes:
        name: The name of the run, and of the folder for temporary files.
        network: Called for the Pretrained (annotator/worker/embedding/cluster_executor.py, _Network).
        images: The files of each image; the other arrays are those of a Plan.
        versions: The versions on the machine that asks (annotator/cluster/package_versions.py).
        board: A Board, for progress.
        bands: Which bands are shown of images of many.
    """

    name: str
    parent: str
    network: Any
    images: list[ImageFiles]
    labels: np.ndarray
    mask: np.ndarray
    unbiased: np.ndarray
    held_out: np.ndarray
    method: str
    parameters: dict[str, Any]
    epochs: int
    versions: dict[str, str]
    board: Any
    bands: BandChoices


class ProgressBoard:
    """A Ray actor that holds the progress which the processes report, for the waiting process."""

    def __init__(self):
        self._state: dict[str, Any] = {
            "doing": "waiting for the cluster",
            "done": 0,
            "of": 0,
            "workers": 0,
            "refusal": "",
        }

    def say(self, **facts: Any) -> None:
        """Replace some of the facts."""
        self._state |= facts

    def get_state(self) -> dict[str, Any]:
        """Return the facts: doing, done, of, workers; refusal: why the training cannot be done, "" while it can."""
        return self._state

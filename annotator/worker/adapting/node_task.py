"""Inputs and progress of a cluster training's processes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from annotator.store.images.file_addresses import ImageFiles
from annotator.store.pictures.bands import BandChoices

RESULT_FILE = "final.safetensors"


@dataclass(frozen=True, eq=False)
class AdaptationTask:
    """The inputs of every process of a cluster training."""

    # run name and temporary folder name
    name: str
    parent: str
    # callable that returns the `Pretrained`
    network: Any
    images: list[ImageFiles]
    labels: np.ndarray
    mask: np.ndarray
    unbiased: np.ndarray
    held_out: np.ndarray
    method: str
    parameters: dict[str, Any]
    epochs: int
    # package versions of the requesting machine
    versions: dict[str, str]
    board: Any
    bands: BandChoices


class ProgressBoard:
    """A Ray actor that stores the progress of a cluster training, for the process that waits for it."""

    def __init__(self):
        self._state: dict[str, Any] = {
            "doing": "waiting for the cluster",
            "done": 0,
            "of": 0,
            "workers": 0,
            "refusal": "",
        }

    def say(self, **facts: Any) -> None:
        self._state |= facts

    def get_state(self) -> dict[str, Any]:
        """Return the stored progress: doing, done, of, workers and refusal ("" if none)."""
        return self._state

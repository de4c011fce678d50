"""What the processes of a training on a cluster get, and what they say of themselves. It loads no networks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from annotator.store.images.file_addresses import ImageFiles

FINAL = "final.safetensors"


@dataclass(frozen=True, eq=False)
class Task:
    """What all processes get.

    Attributes:
        name: Of the run; of the folder for temporary files, too.
        network: -> the Pretrained (annotator/worker/embedding/pool.py, _Network).
        images: Where the files of each image lie; the other arrays are those of a Plan.
        board: A Board, to say how far it is.
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


class Board:
    """An actor: what the processes say of themselves, for the process that waits."""

    def __init__(self):
        self._said: dict[str, Any] = {
            "doing": "waiting for the cluster",
            "done": 0,
            "of": 0,
            "workers": 0,
            "refusal": "",
        }

    def say(self, **facts: Any) -> None:
        """Replace some of it."""
        self._said |= facts

    def said(self) -> dict[str, Any]:
        """All of it: doing, done, of, workers; refusal: why it cannot be done, "" while it can."""
        return self._said

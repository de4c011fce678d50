"""Scoring all images of a project with a trained model on the machines of a cluster.

A cluster gets the model once. Each call takes a chunk of images: where their features lie, if its machine sees the same
files, else the features themselves (about 5 KB an image), and returns their probabilities, which are written by rows
here. So this process holds a few chunks, however many images there are. Images that the cluster does not score are
scored here: a training never fails because of a machine.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotator.cluster.connection import Use
from annotator.cluster.tasks import Machine, Tasks
from annotator.errors import AnnotatorError
from annotator.store.database.arrays import scratch_array
from annotator.store.features.rows import Rows
from annotator.worker.features.coding import StoredRegions, as_codes
from models.ensemble.all_images import ROWS, ImageModel, Known
from models.ensemble.basis import Basis
from models.ensemble.regions import RegionCodes, Regions
from models.linear.blocks import in_blocks
from models.linear.training import Features, one_thread

CHUNK = 16 * ROWS  # images of a call; whole blocks, so that a call scores the blocks that this process would
PROBES = 5  # files of features that a machine is asked to see

log = logging.getLogger("annotator.worker")

Read = Rows | np.ndarray
"""Rows of one array, in memory or still to be read."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some images to score.

    Attributes:
        features: (n, D).
        codes, lengths: (n, R, K) and (n, R), of their regions; None: without.
        known: The labels of these images.
    """

    features: Read
    codes: Read | None
    lengths: Read | None
    known: Known


Shared = tuple[ImageModel, Basis | None]
"""What all calls need: the model, and the basis of the codes."""


def score_chunk(shared: Shared, chunk: Chunk) -> np.ndarray:
    """Return the probabilities (n, C) float32 of a chunk; runs on any machine."""
    model, basis = shared
    parts = []
    with one_thread():
        for start in range(0, len(chunk.features), ROWS):
            rows = slice(start, min(start + ROWS, len(chunk.features)))
            codes = None
            if basis is not None and chunk.codes is not None and chunk.lengths is not None:
                codes = as_codes(basis, np.array(chunk.codes[rows]), np.array(chunk.lengths[rows]))
            parts.append(model.probabilities(np.array(chunk.features[rows]), codes, chunk.known[rows]))
    return np.concatenate(parts)


class ScoringOnCluster:
    """A `Scoring` on the machines of a cluster.

    Args:
        ray: The module, connected.
        folder: For the array of probabilities.

    Attributes:
        notes: Sentences for a person: machines that are left out, images that were scored here.
    """

    def __init__(self, ray: Any, use: Use, folder: Path):
        self._ray, self._use, self._folder = ray, use, folder
        self.notes: list[str] = []

    def __call__(
        self,
        model: ImageModel,
        features: Features,
        region_codes: Regions | None,
        known: Callable[[slice], Known],
        classes: int,
        tell: Callable[[], None],
    ) -> np.ndarray:
        """Return the probabilities of all N images, (N, C) float32; what no machine can score is scored here."""
        images = _Images(features, region_codes, known)
        shared = model, None if region_codes is None else region_codes.basis
        result = scratch_array(self._folder, (len(features), classes), np.float32)
        missing = set(range(0, len(features), CHUNK))
        tasks: Tasks | None = None
        try:
            tasks = Tasks(self._ray, self._use, score_chunk, shared, images.probes())

            def argument(start: int, machine: Machine) -> Chunk:
                return images.chunk(start, read=not machine.sees)

            with closing(tasks.results(sorted(missing), argument)) as results:
                for done in results:
                    tell()
                    if done is not None and done.error is None:
                        result[done.key : done.key + CHUNK] = done.result
                        missing.remove(done.key)
                    elif done is not None:
                        self._note(f"{done.machine} could not score images: {_last_line(done.error)}")
        except AnnotatorError as error:
            self._note(str(error))
        for sentence in tasks.left_out if tasks else ():
            self._note(sentence)
        if missing:
            self._score(sorted(missing), shared, images, result, tell)
        return result

    def _score(self, starts: Sequence[int], shared: Shared, images: "_Images", result: np.ndarray, tell) -> None:
        """Score in this process the chunks that the cluster has not scored."""
        self._note(f"{sum(images.size(start) for start in starts):,} of {len(result):,} images were scored here")

        def score(places: slice) -> None:
            for start in starts[places]:
                result[start : start + CHUNK] = score_chunk(shared, images.chunk(start, read=True))

        in_blocks(len(starts), 1, score, tell)

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)
            log.warning("%s", sentence)


class _Images:
    """The images of a collection, cut into chunks."""

    def __init__(self, features: Features, region_codes: Regions | None, known: Callable[[slice], Known]):
        self._features: Read = features if isinstance(features, Rows) else np.asarray(features)
        self._codes, self._lengths = _arrays(region_codes)
        self._known = known

    def probes(self) -> list[tuple[Path, int]]:
        """Return a few of the feature files, with their sizes; [] where the features are in memory."""
        files = self._features.files() if isinstance(self._features, Rows) else []
        some = files[:: max(1, len(files) // PROBES)][:PROBES]
        return [(path, path.stat().st_size) for path in some]

    def size(self, start: int) -> int:
        return min(CHUNK, len(self._features) - start)

    def chunk(self, start: int, *, read: bool) -> Chunk:
        """Return the chunk of images that begins at a row.

        Args:
            start: The row.
            read: Whether the chunk carries the features themselves, not only where they lie.
        """
        stop = start + self.size(start)

        def cut(array: Read | None) -> Read | None:
            if array is None:
                return None
            return array.sliced(start, stop) if isinstance(array, Rows) and not read else array[start:stop]

        features = cut(self._features)
        assert features is not None  # only codes may be missing
        return Chunk(features, cut(self._codes), cut(self._lengths), self._known(slice(start, stop)))


def _arrays(region_codes: Regions | None) -> tuple[Read | None, Read | None]:
    """Return codes (N, R, K) and lengths (N, R); (None, None) without region codes."""
    if region_codes is None:
        return None, None
    if isinstance(region_codes, StoredRegions):
        return region_codes.codes, region_codes.lengths
    if not isinstance(region_codes, RegionCodes):
        region_codes = region_codes[:]
    return region_codes.codes.numpy(), region_codes.lengths[..., 0].numpy()


def _last_line(error: Exception | None) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__

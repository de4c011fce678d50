"""Scores all images with a trained model on a cluster.

Images that the cluster does not score are scored here, so no machine can fail a training.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotator.cluster.connection import ClusterUse
from annotator.cluster.task_runner import TaskMachine, TaskRunner
from annotator.errors import AnnotatorError
from annotator.store.database.arrays import create_scratch_array
from annotator.store.features.sharded_rows import ShardedRows
from annotator.worker.features.region_coding import StoredRegions, to_region_codes
from spmll.ensemble.basis import Basis
from spmll.ensemble.collection_scoring import IMAGES_PER_BLOCK, ImageModel, KnownLabels
from spmll.ensemble.regions import RegionCodes, Regions
from spmll.linear.blocks import run_in_blocks
from spmll.linear.training import Features, one_thread

# images of a call; whole blocks, so that a call scores the blocks that this process would
IMAGES_PER_CALL = 16 * IMAGES_PER_BLOCK
PROBED_FILES = 5  # files of features that a machine is asked to see

log = logging.getLogger("annotator.worker")

RowArray = ShardedRows | np.ndarray
"""Rows of one array, in memory or still to be read."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """A batch of images to score on a cluster."""

    # (n, D)
    features: RowArray
    # codes, lengths: region codes (n, R, K) and (n, R), or None
    codes: RowArray | None
    lengths: RowArray | None
    known: KnownLabels


SharedInputs = tuple[ImageModel, Basis | None]
"""What all calls need: the model, and the basis of the codes."""


def score_chunk(shared: SharedInputs, chunk: Chunk) -> np.ndarray:
    """Return a chunk's probabilities (n, C) float32."""
    model, basis = shared
    parts = []
    with one_thread():
        for start in range(0, len(chunk.features), IMAGES_PER_BLOCK):
            rows = slice(start, min(start + IMAGES_PER_BLOCK, len(chunk.features)))
            codes = None
            if basis is not None and chunk.codes is not None and chunk.lengths is not None:
                codes = to_region_codes(basis, np.array(chunk.codes[rows]), np.array(chunk.lengths[rows]))
            parts.append(model.probabilities(np.array(chunk.features[rows]), codes, chunk.known[rows]))
    return np.concatenate(parts)


class ClusterScoring:
    """A `ScoringFunction` that scores images on the machines of a cluster.

    Attributes:
        problem_sentences: Sentences about excluded machines and locally scored images.
    """

    def __init__(self, ray: Any, use: ClusterUse, folder: Path):
        self._ray, self._use, self._folder = ray, use, folder
        self.problem_sentences: list[str] = []

    def __call__(
        self,
        model: ImageModel,
        features: Features,
        region_codes: Regions | None,
        known: Callable[[slice], KnownLabels],
        classes: int,
        tell: Callable[[], None],
    ) -> np.ndarray:
        """Return the probabilities of all images, (N, C) float32, scored here if no machine of the cluster can.

        Args:
            known: From a slice of rows to labels.
            tell: Called regularly.
        """
        images = _Images(features, region_codes, known)
        shared = model, None if region_codes is None else region_codes.basis
        result = create_scratch_array(self._folder, (len(features), classes), np.float32)
        missing = set(range(0, len(features), IMAGES_PER_CALL))
        tasks: TaskRunner | None = None
        try:
            tasks = TaskRunner(self._ray, self._use, score_chunk, shared, images.choose_probe_files())

            def argument(start: int, machine: TaskMachine) -> Chunk:
                return images.make_chunk(start, include_features=not machine.sees_files)

            with closing(tasks.iterate_results(sorted(missing), argument)) as results:
                for done in results:
                    tell()
                    if done is not None and done.error is None:
                        result[done.key : done.key + IMAGES_PER_CALL] = done.result
                        missing.remove(done.key)
                    elif done is not None:
                        self._add_note(f"{done.machine} could not score images: {_last_line(done.error)}")
        except AnnotatorError as error:
            self._add_note(str(error))
        for sentence in tasks.exclusion_sentences if tasks else ():
            self._add_note(sentence)
        if missing:
            self._score_locally(sorted(missing), shared, images, result, tell)
        return result

    def _score_locally(
        self, starts: Sequence[int], shared: SharedInputs, images: "_Images", result: np.ndarray, tell
    ) -> None:
        """Score the chunks that no machine has scored in this process."""
        self._add_note(
            f"{sum(images.get_chunk_size(start) for start in starts):,} of {len(result):,} images were scored here"
        )

        def score(places: slice) -> None:
            for start in starts[places]:
                result[start : start + IMAGES_PER_CALL] = score_chunk(
                    shared, images.make_chunk(start, include_features=True)
                )

        run_in_blocks(len(starts), 1, score, tell)

    def _add_note(self, sentence: str) -> None:
        if sentence not in self.problem_sentences:
            self.problem_sentences.append(sentence)
            log.warning("%s", sentence)


class _Images:
    """The images to score on a cluster, in chunks."""

    def __init__(self, features: Features, region_codes: Regions | None, known: Callable[[slice], KnownLabels]):
        self._features: RowArray = features if isinstance(features, ShardedRows) else np.asarray(features)
        self._codes, self._lengths = _get_code_arrays(region_codes)
        self._known = known

    def choose_probe_files(self) -> list[tuple[Path, int]]:
        """Return a few embedding files with sizes, by which machines test their disk access ([] if in memory)."""
        files = self._features.list_files() if isinstance(self._features, ShardedRows) else []
        some = files[:: max(1, len(files) // PROBED_FILES)][:PROBED_FILES]
        return [(path, path.stat().st_size) for path in some]

    def get_chunk_size(self, start: int) -> int:
        return min(IMAGES_PER_CALL, len(self._features) - start)

    def make_chunk(self, start: int, *, include_features: bool) -> Chunk:
        """Return the chunk that starts at a row, with its embeddings or only the paths of their files."""
        stop = start + self.get_chunk_size(start)

        def cut(array: RowArray | None) -> RowArray | None:
            if array is None:
                return None
            return (
                array.get_slice(start, stop)
                if isinstance(array, ShardedRows) and not include_features
                else array[start:stop]
            )

        features = cut(self._features)
        assert features is not None  # only codes may be missing
        return Chunk(features, cut(self._codes), cut(self._lengths), self._known(slice(start, stop)))


def _get_code_arrays(region_codes: Regions | None) -> tuple[RowArray | None, RowArray | None]:
    """Return codes (N, R, K) and lengths (N, R), or (None, None)."""
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

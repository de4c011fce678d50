"""The backbone on a cluster machine: threads decode and embed, or decode for a GPU."""

from collections.abc import Callable
from itertools import chain

import numpy as np
import torch

from annotator.store.locations.location import PendingRead
from annotator.store.pictures.bands import BandChoices
from annotator.worker.features.embed import EmbeddedBatch, embed_batches, embedding_threads
from spmll.backbones.batch_size import tune_batch_size
from spmll.backbones.frozen_backbone import load_on_device
from spmll.backbones.pretrained import Pretrained


class NodeNetwork:
    """A context manager that holds a backbone and the threads that decode and embed images."""

    def __init__(
        self,
        name: str,
        source: Callable[[], Pretrained],
        threads: int,
        use_gpu: bool,
        bands: BandChoices,
    ):
        """Load the backbone, on a GPU if requested and available.

        Args:
            source: Returns a separate copy per call.
            threads: Number of decoding threads.
        """
        self._backbone = load_on_device(name, source, "cuda" if use_gpu and torch.cuda.is_available() else "cpu")
        self._threads, self._bands = threads, bands
        self.input_size = self._backbone.input_size
        self.setting = self._backbone.setting
        tune_batch_size(self._backbone)

    def __enter__(self) -> "NodeNetwork":
        self._context = embedding_threads(self._threads, self._threads)
        self._pool = self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    def embed(self, count: int, begin: Callable[[int], PendingRead]) -> EmbeddedBatch:
        """Embed `count` images and their regions in float16. `begin`: from position to pending read of a file."""
        parts = list(embed_batches(count, begin, self._backbone, self._pool, regions=True, bands=self._bands))
        with np.errstate(over="ignore"):  # numbers beyond half precision become infinite, which the project reports
            features = np.concatenate([part.features for part in parts]).astype(np.float16)
        return EmbeddedBatch(
            list(chain.from_iterable(part.indices for part in parts)),
            features,
            np.concatenate([part.regions for part in parts if part.regions is not None]),
            list(chain.from_iterable(part.failures for part in parts)),
            list(chain.from_iterable(part.facts for part in parts)),
            list(chain.from_iterable(part.appearances for part in parts)),
        )

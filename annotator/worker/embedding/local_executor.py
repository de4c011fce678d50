"""The executor of this machine, which runs the worker's embedding pipeline."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from annotator.store.database.database import Database
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.images.file_addresses import load_image_files, start_reading_image
from annotator.store.locations.location import PendingRead
from annotator.worker.embedding.chunks import ChunkQueue
from annotator.worker.embedding.result_writer import EmbeddingResult
from annotator.worker.features.embed import SizedThreadPool, embed_batches, embedding_threads

if TYPE_CHECKING:
    from spmll.backbones.frozen_backbone import Backbone

NODE_NAME = "this machine"
IMAGES_PER_CHUNK = 4096  # images whose places are looked up at once


class LocalExecutor:
    """An executor that embeds in threads of this process."""

    note = ""

    def __init__(self, db: Database, backbone: "Backbone"):
        self._db, self._backbone = db, backbone
        self.workers = 0

    def iterate_results(self, chunks: ChunkQueue, should_stop: Callable[[], bool]) -> Iterator[EmbeddingResult | None]:
        with embedding_threads() as pool:
            self.workers = pool.size
            while not should_stop() and (chunk := chunks.pop(IMAGES_PER_CHUNK)) is not None:
                yield from self._embed_images(chunk.image_ids, pool, should_stop)

    def _embed_images(
        self, image_ids: np.ndarray, pool: SizedThreadPool, should_stop: Callable[[], bool]
    ) -> Iterator[EmbeddingResult]:
        of_images = load_image_files(self._db, image_ids.tolist())

        def begin(place: int) -> PendingRead:
            return start_reading_image(of_images[place], patient=True)

        bands = get_shown_bands(self._db)
        for batch in embed_batches(
            len(of_images), begin, self._backbone, pool, regions=True, should_stop=should_stop, bands=bands
        ):
            assert batch.regions is not None  # they were asked for
            failures = [(int(image_ids[place]), reason) for place, reason in batch.failures]
            facts = [(int(image_ids[place]), facts) for place, facts in batch.facts]
            looks = [(int(image_ids[place]), appearance) for place, appearance in batch.appearances]
            with np.errstate(over="ignore"):  # numbers beyond half precision become infinite, which is reported
                features = batch.features.astype(np.float16)
            yield EmbeddingResult(image_ids[batch.indices], features, batch.regions, failures, facts, looks, NODE_NAME)

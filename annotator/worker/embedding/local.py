"""The executor of this machine: the worker's own pipeline (worker/features/embed.py) over all chunks."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from annotator.store.database.database import Database
from annotator.store.images.file_addresses import image_files, reading_image
from annotator.store.locations.location import Reading
from annotator.worker.embedding.chunks import Chunks
from annotator.worker.embedding.results import Result
from annotator.worker.features.embed import Threads, embed_places, embedding_threads

if TYPE_CHECKING:
    from models.backbones.networks import Backbone

NODE = "this machine"
CHUNK = 4096  # images whose places are looked up at once


class Local:
    """An executor that embeds in threads of this process.

    Attributes:
        workers: The number of threads.
        note: Always "".
    """

    note = ""

    def __init__(self, db: Database, backbone: "Backbone"):
        self._db, self._backbone = db, backbone
        self.workers = 0

    def results(self, chunks: Chunks, should_stop: Callable[[], bool]) -> Iterator[Result | None]:
        """Yield results as they come, until all chunks are done or should_stop returns True."""
        with embedding_threads() as pool:
            self.workers = pool.size
            while not should_stop() and (chunk := chunks.take(CHUNK)) is not None:
                yield from self._of(chunk.image_ids, pool, should_stop)

    def _of(self, image_ids: np.ndarray, pool: Threads, should_stop: Callable[[], bool]) -> Iterator[Result]:
        of_images = image_files(self._db, image_ids.tolist())

        def begin(place: int) -> Reading:
            return reading_image(of_images[place], patient=True)

        for batch in embed_places(len(of_images), begin, self._backbone, pool, regions=True, should_stop=should_stop):
            assert batch.regions is not None  # they were asked for
            failures = [(int(image_ids[place]), reason) for place, reason in batch.failures]
            facts = [(int(image_ids[place]), facts) for place, facts in batch.facts]
            looks = [(int(image_ids[place]), appearance) for place, appearance in batch.appearances]
            with np.errstate(over="ignore"):  # numbers beyond half precision become infinite, which is reported
                features = batch.features.astype(np.float16)
            yield Result(image_ids[batch.indices], features, batch.regions, failures, facts, looks, NODE)

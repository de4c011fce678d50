"""Measures the appearance of images embedded by older versions, except images at URLs."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.store.images import appearances, images
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.networks import embedding_claim
from annotator.store.pictures.appearance import GRAY_SIDE_PIXELS, Appearance, measure_appearance
from annotator.store.pictures.bands import BandChoices
from annotator.store.pictures.decoding import BadImage, open_rgb
from annotator.worker.features.worker_context import WorkerContext
from spmll.usable_cores import count_usable_cores

IMAGES_PER_STEP = 64  # images between two looks for more urgent work: half a second


class AppearanceMeasurer:
    """The worker duty of measuring image appearance."""

    def __init__(self, context: WorkerContext):
        self._context, self._db = context, context.db
        self._registrations: int | None = None
        self._after: int | None = None  # images up to this id were tried since then; None: all

    def measure_batch(self) -> bool:
        """Measure some unmeasured images, and return False if none remain.

        Unreadable images are retried after the next registration or restart.
        """
        registrations = self._db.get_setting("registrations", 0)
        if registrations != self._registrations:
            self._registrations, self._after = registrations, 0
        if self._after is None or embedding_claim.get_running(self._db):
            return False
        image_ids = appearances.find_unmeasured(self._db, self._after, IMAGES_PER_STEP)
        if not image_ids:
            self._after = None
            return False
        self._context.report_state("measuring images")
        bands = get_shown_bands(self._db)
        with ThreadPoolExecutor(count_usable_cores()) as pool:
            measured = pool.map(lambda image_id: self._measure_image(image_id, bands), image_ids)
            found = [(image_id, one) for image_id, one in zip(image_ids, measured, strict=True) if one]
        if bands == get_shown_bands(self._db):
            appearances.save(self._db, found)
        self._after = image_ids[-1]
        return True

    def _measure_image(self, image_id: int, bands: BandChoices) -> Appearance | None:
        try:
            source = images.find_image_source(self._db, image_id)
            return (
                measure_appearance(open_rgb(source, (GRAY_SIDE_PIXELS, GRAY_SIDE_PIXELS), bands))
                if isinstance(source, Path)
                else None
            )
        except (AnnotatorError, BadImage):
            return None

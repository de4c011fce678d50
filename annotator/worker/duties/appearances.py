"""Measures how images look (store/pictures/appearance.py) that were embedded before that was done beside it.

Images at addresses are left out: they would all be fetched again. They are measured when they are embedded anew.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from annotator.cluster.connection import cores
from annotator.errors import AnnotatorError
from annotator.store.images import appearances, images
from annotator.store.images.band_setting import shown_bands
from annotator.store.networks import embedding
from annotator.store.pictures.appearance import SIDE, Appearance, appearance_of
from annotator.store.pictures.bands import Bands
from annotator.store.pictures.decoding import BadImage, open_rgb
from annotator.worker.features.context import Context

AT_ONCE = 64  # images between two looks for more urgent work: half a second


class Appearances:
    """The duty of measuring images; each worker has one instance."""

    def __init__(self, context: Context):
        self._context, self._db = context, context.db
        self._registrations: int | None = None
        self._after: int | None = None  # images up to this id were tried since then; None: all

    def measure_some(self) -> bool:
        """Measure a few images that were not; return whether there were any.

        An image that cannot be read now is tried again after the next registration, or when the worker starts anew.
        """
        registrations = self._db.setting("registrations", 0)
        if registrations != self._registrations:
            self._registrations, self._after = registrations, 0
        if self._after is None or embedding.running(self._db):
            return False
        image_ids = appearances.unmeasured(self._db, self._after, AT_ONCE)
        if not image_ids:
            self._after = None
            return False
        self._context.say("measuring images")
        bands = shown_bands(self._db)
        with ThreadPoolExecutor(cores()) as pool:
            measured = pool.map(lambda image_id: self._measured(image_id, bands), image_ids)
            found = [(image_id, one) for image_id, one in zip(image_ids, measured, strict=True) if one]
        if bands == shown_bands(self._db):
            appearances.keep(self._db, found)
        self._after = image_ids[-1]
        return True

    def _measured(self, image_id: int, bands: Bands) -> Appearance | None:
        try:
            source = images.image_source(self._db, image_id)
            return appearance_of(open_rgb(source, (SIDE, SIDE), bands)) if isinstance(source, Path) else None
        except (AnnotatorError, BadImage):
            return None

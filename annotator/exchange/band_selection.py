"""Selection of the three bands by which multi-band images are displayed."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from annotator.errors import AnnotatorError
from annotator.exchange.imports.image_folders import list_folders, register_folders
from annotator.humanize import format_count, format_duration
from annotator.progress_callbacks import ProgressCallback
from annotator.records import BadFile
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.images.address_registration import register_address
from annotator.store.images.band_choice import delete_derived_pictures, find_waiting_folders, save_bands
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.images.pixel_notes import PixelNotes
from annotator.store.locations.addresses import Address
from annotator.store.locations.location import open_source
from annotator.store.locations.remote_files import parse_stored_folder
from annotator.store.networks import configuration, embedding_claim, machine_settings
from annotator.store.pictures.bands import BandTriple, format_bands
from annotator.store.pictures.decoding import BadImage, open_rgb

TIMED_IMAGES = 3  # images that are read to see how long one takes


@dataclass(frozen=True)
class BandChoiceResult:
    """The result of a band selection.

    Attributes:
        changed: Registered images whose displayed bands changed.
        bad: Files still not registered.
        seconds: Estimated analysis time.
    """

    changed: int
    added: int
    bad: Sequence[BadFile]
    seconds: float
    sentences: Sequence[str]


def choose_bands(
    db: Database, three: BandTriple, count: int | None = None, progress: ProgressCallback | None = None
) -> BandChoiceResult:
    """Display these bands from now on, and register the image files that waited for the choice.

    Thumbnails and embeddings are computed again, labels stay. The call is idempotent.

    Args:
        three: Red, green and blue band, from 1.
        count: Only images with this many bands. None selects all images that declare no red, green and blue.

    Raises:
        AnnotatorError: An image lacks these bands, or `annotator embed` is running.
    """
    changed = change_bands(db, three, count)
    newest = db.value("SELECT coalesce(max(id), 0) FROM image")
    added, bad, notes = 0, list[BadFile](), PixelNotes()
    for folder in map(parse_stored_folder, find_waiting_folders(db)):
        if isinstance(folder, Address):
            one = register_address(db, folder)
        else:
            one = register_folders(db, list_folders(db, [(folder, None)], db.paths.project, True), progress)
        added += one.added
        bad += one.bad
        notes.merge(one.notes)
    new = [
        row[0] for row in db.tuples("SELECT id FROM image WHERE id > ? AND bands != '' LIMIT ?", [newest, TIMED_IMAGES])
    ]
    seconds = _estimate_seconds_per_image(db, [*changed[:TIMED_IMAGES], *new][:TIMED_IMAGES]) * (len(changed) + added)
    return BandChoiceResult(len(changed), added, bad, seconds, notes.format_sentences())


def change_bands(db: Database, three: BandTriple, count: int | None = None) -> list[int]:
    """Set the displayed bands, and return the ids of the images to analyze again."""
    db.check_writable()
    if embedding_claim.get_running(db) is not None:
        raise AnnotatorError(
            "annotator embed is at work on the images as they are shown now. Try again when it is done."
        )
    changed = save_bands(db, three, count)
    delete_derived_pictures(db, changed)
    return changed


def _estimate_seconds_per_image(db: Database, image_ids: Sequence[int]) -> float:
    speed = machine_settings.load_speeds().get(configuration.get_backbone(db))
    network = 1 / speed.images_a_second if speed and speed.images_a_second > 0 else 0.0
    bands, times = get_shown_bands(db), list[float]()
    for image_id in image_ids:
        started = time.perf_counter()
        try:
            open_rgb(open_source(images.find_image_source(db, image_id)), (320, 320), bands)
        except (AnnotatorError, BadImage):
            continue
        times.append(time.perf_counter() - started)
    return (sum(times) / len(times) if times else 0.0) + network


def describe_analysis_time(db: Database, image_ids: Sequence[int]) -> str:
    """Describe the estimated analysis time, such as "about 3 seconds"."""
    return (
        f"about {format_duration(max(1.0, _estimate_seconds_per_image(db, image_ids[:TIMED_IMAGES]) * len(image_ids)))}"
    )


def describe_band_choice(chosen: BandChoiceResult, three: BandTriple, count: int | None) -> list[str]:
    of = "images that do not name red, green and blue" if count is None else f"images of {count} bands"
    said = [f"Bands {format_bands(three)} are shown of {of}.", *chosen.sentences]
    if chosen.added:
        said.append(f"{format_count(chosen.added, 'image')} added that had waited for it. Import their labels again.")
    if again := chosen.changed + chosen.added:
        said.append(
            f"{format_count(again, 'image')} to analyze, which takes the worker about "
            f"{format_duration(max(1.0, chosen.seconds))}; pictures and heat maps are made anew. Labels stay."
        )
    return said

"""The disk space that a project of a size needs, computed before anything is made."""

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.humanize import format_count

BLOCK_BYTES = 4096  # bytes that files are rounded up to
FEATURE_BYTES_PER_IMAGE = 4900  # bytes an image: features, region codes and lengths
ROW_BYTES_PER_IMAGE = 2500  # bytes an image in the tables and their log, with its label
KEPT_RUNS = 2  # that are kept while the next is written
RUN_BYTES_PER_IMAGE = 30  # bytes an image beside its probabilities: rankings, query orders
EXPORT_BYTES_PER_IMAGE = 150  # bytes an image
SPARE_FACTOR = 1.1


def compute_needed_bytes(images: int, classes: int, kilobytes: int, steps: Collection[str]) -> int:
    """Return an upper bound of the bytes that the steps take on the disk."""
    photo = -(-1000 * kilobytes // BLOCK_BYTES) * BLOCK_BYTES + BLOCK_BYTES // 8 if "photos" in steps else 0
    features = FEATURE_BYTES_PER_IMAGE + 3 * classes if "embed" in steps else 0
    of_runs = (KEPT_RUNS + 1) * (2 * classes + RUN_BYTES_PER_IMAGE) if "train" in steps else 0
    return round(SPARE_FACTOR * images * (photo + ROW_BYTES_PER_IMAGE + features + of_runs + EXPORT_BYTES_PER_IMAGE))


def refuse_too_large(folder: Path, images: int, classes: int, kilobytes: int, steps: Collection[str]) -> None:
    """Check that the disk of a folder has room for a size.

    Raises:
        AnnotatorError: The disk has too little room; the message gives the numbers.
    """
    needed, free = compute_needed_bytes(images, classes, kilobytes, steps), shutil.disk_usage(folder).free
    what = f"{format_count(images, 'image')} x {format_count(classes, 'class', 'classes')}"
    elsewhere = "Measure a smaller size, or name a folder on a larger disk in TMPDIR."
    if needed > free:
        raise AnnotatorError(
            f"{what} would take {needed / 1e9:,.1f} GB in {folder}, where {free / 1e9:,.1f} GB are free. {elsewhere}"
        )
    files = images if "photos" in steps else 0
    possible = os.statvfs(folder).f_favail if hasattr(os, "statvfs") else files
    if 0 < possible < files:  # some file systems have no limit, and say 0
        raise AnnotatorError(f"{what} are more files than the {possible:,} that fit into {folder}. {elsewhere}")

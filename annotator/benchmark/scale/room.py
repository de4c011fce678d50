"""The disk space that a project of a size needs, computed before anything is made."""

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.shares import counted

BLOCK = 4096  # bytes that files are rounded up to
FEATURES = 4900  # bytes an image: features, region codes and lengths
ROWS = 2500  # bytes an image in the tables and their log, with its label
RUNS = 2  # that are kept while the next is written
OF_RUN = 30  # bytes an image beside its probabilities: rankings, query orders
EXPORTED = 150  # bytes an image
SPARE = 1.1


def needed_bytes(images: int, classes: int, kilobytes: int, steps: Collection[str]) -> int:
    """Return an upper bound of the bytes that the steps take on the disk."""
    photo = -(-1000 * kilobytes // BLOCK) * BLOCK + BLOCK // 8 if "photos" in steps else 0
    features = FEATURES + 3 * classes if "embed" in steps else 0
    of_runs = (RUNS + 1) * (2 * classes + OF_RUN) if "train" in steps else 0
    return round(SPARE * images * (photo + ROWS + features + of_runs + EXPORTED))


def refuse_too_large(folder: Path, images: int, classes: int, kilobytes: int, steps: Collection[str]) -> None:
    """Check that the disk of a folder has room for a size.

    Raises:
        AnnotatorError: The disk has too little room; the message gives the numbers.
    """
    needed, free = needed_bytes(images, classes, kilobytes, steps), shutil.disk_usage(folder).free
    what = f"{counted(images, 'image')} x {counted(classes, 'class', 'classes')}"
    elsewhere = "Measure a smaller size, or name a folder on a larger disk in TMPDIR."
    if needed > free:
        raise AnnotatorError(
            f"{what} would take {needed / 1e9:,.1f} GB in {folder}, where {free / 1e9:,.1f} GB are free. {elsewhere}"
        )
    files = images if "photos" in steps else 0
    possible = os.statvfs(folder).f_favail if hasattr(os, "statvfs") else files
    if 0 < possible < files:  # some file systems have no limit, and say 0
        raise AnnotatorError(f"{what} are more files than the {possible:,} that fit into {folder}. {elsewhere}")

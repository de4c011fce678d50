"""Classification of an image folder, with files decoded in threads."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.classifier.onnx_classifier import IMAGES_PER_BATCH, Classifier
from annotator.exchange.files.csv_cells import CsvWriter
from annotator.progress_callbacks import ProgressCallback, ignore_progress
from annotator.store.pictures.array_image import BadImage
from annotator.store.pictures.files import escape_path
from annotator.store.pictures.picture_kinds import IMAGE_SUFFIXES

MAX_IMAGES_AHEAD = 4 * IMAGES_PER_BATCH  # images that are decoded before they are needed, at most
OUTPUT_FORMATS = ("csv", "json")


@dataclass(frozen=True, eq=False)
class ClassifiedImage:
    """The result for one image, unreadable if `problem` is not "".

    Attributes:
        image: Path relative to the folder, escaped as in a project.
        probabilities: (C,) float32.
    """

    image: str
    probabilities: np.ndarray | None
    problem: str = ""


def list_image_files(folder: Path) -> list[Path]:
    """Return the visible images below a folder by name, or raise AnnotatorError if it has none."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise AnnotatorError(f"There is no folder at {folder}. Name a folder of images, or one image.")

    def fail(error: OSError) -> None:
        raise AnnotatorError(f"{error.filename} cannot be read: {error.strerror}.")

    found = []
    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place, name) for name in names if _is_image(name)]
    if not found:
        raise AnnotatorError(f"There is no image in {folder}. Images are: {', '.join(sorted(IMAGE_SUFFIXES))}.")
    return sorted(found)


def classify_files(
    classifier: Classifier, files: list[Path], folder: Path, report: ProgressCallback = ignore_progress
) -> Iterator[ClassifiedImage]:
    """Yield the probabilities of image files, in their order. Image names are relative to `folder`."""
    root = folder if folder.is_dir() else folder.parent
    done = 0
    with ThreadPoolExecutor(max(1, min(8, os.cpu_count() or 1))) as pool:
        waiting = iter(files)
        decoded: list[tuple[Path, Future[np.ndarray]]] = []
        try:
            while True:
                for path in islice(waiting, MAX_IMAGES_AHEAD - len(decoded)):
                    decoded.append((path, pool.submit(classifier.pixels, path)))
                if not decoded:
                    return
                batch, decoded = decoded[:IMAGES_PER_BATCH], decoded[IMAGES_PER_BATCH:]
                yield from _classify_batch(classifier, batch, root)
                done += len(batch)
                report(done, len(files))
        finally:
            for _, future in decoded:
                future.cancel()


def _classify_batch(
    classifier: Classifier, batch: list[tuple[Path, Future[np.ndarray]]], root: Path
) -> Iterator[ClassifiedImage]:
    pixels, problems = [], {}
    for path, future in batch:
        try:
            pixels.append(future.result())
        except BadImage as error:
            problems[path] = str(error)
    rows = iter(classifier.of_pixels(pixels)) if pixels else iter(())
    for path, _ in batch:
        problem = problems.get(path, "")
        image = escape_path(path.relative_to(root).as_posix())
        yield ClassifiedImage(image, None if problem else next(rows), escape_path(problem))


def write_classifications(
    classifier: Classifier, found: Iterator[ClassifiedImage], file: TextIO, kind: str
) -> tuple[int, int]:
    """Write classified images to a text file as CSV or JSON lines, and return (images, unreadable images)."""
    check_output_format(kind)
    rows = CsvWriter(file)
    if kind == "csv":
        rows.write_row(["image", "present", "problem", *classifier.classes])
    images = unread = 0
    for one in found:
        images += 1
        unread += one.probabilities is None
        values = [] if one.probabilities is None else [round(float(value), 4) for value in one.probabilities]
        present, absent = split_by_thresholds(classifier, values)
        if kind == "csv":
            rows.write_row([one.image, ";".join(present), one.problem, *(values or [""] * len(classifier.classes))])
        else:
            chances = dict(zip(classifier.classes, values, strict=False))
            line = {"image": one.image, "present": present, "absent": absent, "probabilities": chances}
            file.write(json.dumps(line | ({"problem": one.problem} if one.problem else {}), ensure_ascii=False) + "\n")
    return images, unread


def check_output_format(kind: str) -> None:
    if kind not in OUTPUT_FORMATS:
        raise AnnotatorError(f"--format cannot be {kind!r}. {did_you_mean(kind, OUTPUT_FORMATS)}")


def split_by_thresholds(classifier: Classifier, probabilities: list[float]) -> tuple[list[str], list[str]]:
    """Return the classes (present, absent) by the classifier's thresholds, from probabilities per class."""
    present, absent = [], []
    for class_, value in zip(classifier.description.classes, probabilities, strict=False):
        if class_.present_from is not None and value >= class_.present_from:
            present.append(class_.name)
        elif class_.absent_to is not None and value <= class_.absent_to:
            absent.append(class_.name)
    return present, absent


def _is_image(name: str) -> bool:
    return not name.startswith(".") and Path(name).suffix.lower() in IMAGE_SUFFIXES

"""The labels as a torch Dataset, imported only on use because it loads torch."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.formats.export_view import TRAINING_VALUES
from annotator.store.database.database import Database
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.labels import export_reads
from annotator.store.locations.location import Location, open_source
from annotator.store.pictures.bands import NO_BAND_CHOICES, BandChoices
from annotator.store.pictures.decoding import BadImage, open_rgb


class LabeledImages(Dataset[tuple[Any, torch.Tensor, torch.Tensor]]):
    """A torch Dataset of (image, labels, mask), usable in DataLoader workers.

    Images: the transform's result. Without a transform float32 (3, size, size) in [0, 1], stretched to a square,
    or PIL without a size. Labels: (C,) float32, 1 present, -1 absent, else 0. Mask: (C,) float32, 1 where known.

    Attributes:
        classes: C class names.
        names: N image names.
        targets: (N, C) int8, values as in the labels.
        missing: Names of unreadable images, left out.
    """

    classes: list[str]
    names: list[str]
    targets: np.ndarray
    missing: list[str]

    def __init__(
        self,
        classes: list[str],
        names: list[str],
        targets: np.ndarray,
        files: list[Location],
        missing: list[str],
        transform: Callable[[Any], Any] | None,
        size: int | None,
        bands: BandChoices = NO_BAND_CHOICES,
    ):
        """Store the inputs without reading images.

        Args:
            classes: C class names.
            names: N image names.
            targets: (N, C) int8: 1 present, -1 absent, else 0.
            files: File of each image.
            missing: Names of unreadable images, left out.
            transform: Applied to PIL images, or None.
            size: Width and height without a transform. None gives PIL images.
            bands: Displayed bands of multi-band images.
        """
        self.classes, self.names, self.targets, self.missing = classes, names, targets, missing
        self._files, self._transform, self._size, self._bands = files, transform, size, bands

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> tuple[Any, torch.Tensor, torch.Tensor]:
        """Return (image, labels, mask) of one image.

        Args:
            index: Position in `names`.

        Returns:
            The image, labels (C,) and mask (C,).

        Raises:
            AnnotatorError: Unreadable or changed file.
            IndexError: Out of range.
        """
        row = range(len(self.names))[index]
        labels = torch.from_numpy(self.targets[row].astype(np.float32))
        return self._load_image(row), labels, labels.abs()

    def _load_image(self, row: int) -> Any:
        square = (self._size, self._size) if self._size and self._transform is None else None
        try:
            picture = open_rgb(open_source(self._files[row], patient=True), square, self._bands)
        except (AnnotatorError, BadImage) as error:
            raise AnnotatorError(f"{self.names[row]} cannot be read: {error}") from error
        if self._transform is not None:
            return self._transform(picture)
        if square is None:
            return picture
        pixels = np.array(picture.resize(square, reducing_gap=None), np.float32) / 255
        return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def build_labeled_images(
    db: Database,
    split: str | None,
    transform: Callable[[Any], Any] | None,
    choices: Choices,
    size: int | None,
) -> LabeledImages:
    """Return a snapshot of the labels as a Dataset.

    Args:
        db: The project's database.
        split: Name of a split. None selects all images.
        transform: Applied to PIL images, or None.
        choices: Export options that select labels and images.
        size: Width and height without a transform. None gives PIL images.

    Returns:
        The Dataset of the readable images.

    Raises:
        AnnotatorError: The choices are not valid, or the split is empty.
    """
    if split is not None and not choices.splits:
        choices = replace(choices, splits="existing")
    files: list[Location] = []
    names: list[str] = []
    missing: list[str] = []
    with open_data_set(db, choices) as data:
        view = data.view
        if split is not None and split not in view.splits:
            raise AnnotatorError(f"No image is in the split {split!r}. {did_you_mean(split, view.splits)}")
        targets = [np.zeros((0, len(view.classes)), np.int8)]
        for block in view.blocks():
            place_of = {
                row[0]: row[1:]
                for row in export_reads.load_image_files(db, np.array([image.id for image in block.images]))
            }
            rows = [row for row in range(len(block.images)) if split is None or block.splits[row] == split]
            readable = [row for row in rows if block.images[row].id in place_of and not block.missing[row]]
            missing += [block.images[row].name for row in sorted(set(rows) - set(readable))]
            for row in readable:
                folder, path, state = place_of[block.images[row].id]
                files.append(Location(folder, path, state, block.images[row].sha256))
                names.append(block.images[row].name)
            targets.append(TRAINING_VALUES[block.values[readable]])
        classes = [class_.name for class_ in view.classes]
    return LabeledImages(classes, names, np.concatenate(targets), files, missing, transform, size, get_shown_bands(db))

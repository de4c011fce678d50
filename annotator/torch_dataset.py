"""The labels of a project as a torch Dataset that reads the images where they lie.

It loads torch, so only `Project.dataset` imports it, when it is called: pages open projects, too.
"""

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
    """A torch Dataset of (image, labels, mask); the workers of a DataLoader may use it.

    The image is what `transform` makes of the picture (PIL, RGB, upright); without a transform it is float32 (3, size,
    size) in [0, 1], squashed to a square, and with size None the picture itself. Labels are (C,) float32: 1 present, -1
    absent, 0 unknown or unsure. The mask is (C,) float32: 1 where the label is known, else 0.

    Attributes:
        classes: Names of the C classes.
        names: Names of the N images, in their order.
        targets: (N, C) int8, the labels of all images: 1 present, -1 absent, 0 unknown or unsure.
        missing: Names of images of the split that are left out because they have no file that can be read.
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
        """Keep what is needed to read the images; nothing is read yet.

        Args:
            classes: Names of the C classes.
            names: Names of the N images.
            targets: (N, C) int8: 1 present, -1 absent, 0 unknown.
            files: The file of each of the N images.
            missing: Names of images that are left out.
            transform: Called with each picture (PIL, RGB, upright); None: a tensor, or the picture where `size` is
                None.
            size: Width and height in pixels without a transform; None: the picture as it is.
            bands: Which bands are shown of images of many.
        """
        self.classes, self.names, self.targets, self.missing = classes, names, targets, missing
        self._files, self._transform, self._size, self._bands = files, transform, size, bands

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> tuple[Any, torch.Tensor, torch.Tensor]:
        """Return (image, labels, mask) of one image.

        Args:
            index: Its place in `names`; a negative one counts from the end.

        Returns:
            The image as the class describes it, and its labels and mask, (C,) float32 each.

        Raises:
            AnnotatorError: The file cannot be read, or holds another picture by now.
            IndexError: The index is beyond the last image.
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
    """Return the data set with these choices, as it is now.

    Args:
        db: The database of the project.
        split: Only images of this split: of `choices.splits`, or else of the attribute `split`; None: all images.
        transform: As in LabeledImages.
        choices: The cells and images to use.
        size: As in LabeledImages.

    Returns:
        The images that can be read; `missing` names the others.

    Raises:
        AnnotatorError: The choices are not possible, or no image is in the split.
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

"""The Python text of the Dataset in an export for torch, which this package never imports."""

import re
from collections.abc import Iterable

PLAIN_NAME = re.compile(r"[\w .-]+")  # names that need no escaping in a Python string
EXAMPLE_SPLIT = "train"  # the split of the example, if it has images


def format_dataset_module(splits: Iterable[str], with_images: bool) -> str:
    """Return the text of dataset.py, with an example that runs unchanged.

    `splits` are those with images, "" for images in no split.
    """
    named = [name for name in splits if PLAIN_NAME.fullmatch(name)]
    split = EXAMPLE_SPLIT if EXAMPLE_SPLIT in named else min(named, default="")
    arguments = [f'split="{split}"'] if split else []
    arguments += [] if with_images else ['images="path/to/the/images"']
    return MODULE_TEMPLATE.replace("@ARGUMENTS@", ", ".join([*arguments, "transform=transform"]))


MODULE_TEMPLATE = '''\
"""A torch Dataset of this folder: python dataset.py prints what it holds.

    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits
    from torchvision.transforms import v2
    from dataset import MultiLabelImages

    transform = v2.Compose([v2.Resize((224, 224)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    data = MultiLabelImages(@ARGUMENTS@)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(len(data.classes)))  # or a network of yours
    for images, labels, known in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
        loss = binary_cross_entropy_with_logits(model(images), labels, reduction="none")
        loss = (loss * known).sum() / known.sum().clamp(min=1)

A class that nobody has answered about an image is unknown, not absent: `known` is 0 there, and the loss leaves it out.
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

HERE = Path(__file__).resolve().parent


class MultiLabelImages(torch.utils.data.Dataset):
    """Gives (image, labels, known) of each image.

    split        only images of this split; None: all
    transform    called with the PIL image (RGB)
    images       the folder of the images; None: this one

    labels       (C,) float32: 1 present, 0 absent or unknown
    known        (C,) float32: 1 where the label is known, else 0
    """

    def __init__(self, split=None, transform=None, images=None, folder=HERE):
        folder = Path(folder)
        self.root, self.transform = Path(images or folder), transform
        self.classes = (folder / "classes.txt").read_text(encoding="utf-8").split("\\n")[:-1]
        self.labels = np.load(folder / "labels.npy", mmap_mode="r")
        self.names = np.load(folder / "images.npy", mmap_mode="r")
        self.rows = np.arange(len(self.labels))
        if split is not None:
            splits = np.load(folder / "splits.npy", mmap_mode="r")
            self.rows = np.flatnonzero(splits == split)
            if not len(self.rows):
                raise ValueError(f"No image is in the split {split!r}. There is: {sorted(set(splits.tolist()))}")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        with Image.open(self.root / str(self.names[row])) as file:
            image = ImageOps.exif_transpose(file).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        labels = torch.from_numpy(np.array(self.labels[row], np.float32))
        return image, labels.clamp(min=0), (labels != 0).float()


if __name__ == "__main__":
    data = MultiLabelImages()
    for name, column in zip(data.classes, np.asarray(data.labels).T):
        print(f"{name}: {(column == 1).sum()} present, {(column == -1).sum()} absent, {(column == 0).sum()} unknown")
'''

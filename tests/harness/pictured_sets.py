"""Tiny sets whose images can be read, with sides of 64 pixels: copies of those of the papers, and a folder."""

from pathlib import Path

import numpy as np
from PIL import Image


def pictured(root: Path) -> Path:
    """Write a picture into every empty .jpg below the folder."""
    for number, path in enumerate(sorted(root.rglob("*.jpg"))):
        shade = 37 * number % 256
        Image.new("RGB", (64, 64), (shade, 255 - shade, 90 * (number % 3))).save(path)
    return root


def colored(root: Path) -> tuple[Path, Path]:
    """Thirty images of two colours, with the truth of their colour, a frame, and a bar: (folder, truth)."""
    images = root / "images"
    images.mkdir()
    rows, chance = ["image,labels"], np.random.default_rng(0)
    for number in range(30):
        pixels = chance.integers(0, 60, (64, 64, 3), dtype=np.uint8)
        pixels[:, :, number % 2] += 150
        shows = ["green" if number % 2 else "red"]
        if number % 4 < 2:
            pixels[:8] = 255
            shows.append("frame")
        if number % 3 == 0:
            pixels[:, 28:36] = 0
            shows.append("bar")
        Image.fromarray(pixels).save(images / f"{number:02d}.png")
        rows.append(f"{number:02d}.png,{'|'.join(shows)}")
    truth = root / "truth.csv"
    truth.write_text("\n".join(rows) + "\n")
    return images, truth

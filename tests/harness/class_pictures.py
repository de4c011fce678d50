"""Small pictures of two classes, and the labels that a project has of them."""

import hashlib
import io
from pathlib import Path

import numpy as np
from PIL import Image

from annotator.store.database.database import Database

CLASSES = ("cat", "dog")


def picture(number: int) -> bytes:
    """A small PNG of its own content."""
    pixels = np.random.default_rng(number).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


PICTURES = [picture(number) for number in range(6)]
EXPECTED = {hashlib.sha256(content).hexdigest(): CLASSES[number % 2] for number, content in enumerate(PICTURES)}


def cells(project: Path) -> dict[str, str]:
    """sha256 of each image -> its present class, "" for none."""
    rows = Database(project).tuples(
        """SELECT i.sha256, coalesce(c.name, '') FROM image i LEFT JOIN label l ON l.image_id = i.id AND l.state = 1
        LEFT JOIN class c ON c.id = l.class_id WHERE i.problem = ''"""
    )
    return dict(rows)

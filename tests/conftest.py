"""Small real projects: drawn images in a temporary folder, a real SQLite file, the real command line."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from annotator.benchmark.harness.browser import chromium
from annotator.exchange.setup import set_up
from annotator.store.database import Database

CLASSES = ("fox", "heron", "deer")
COLOURS = {"fox": (210, 90, 30), "heron": (90, 130, 200), "deer": (120, 85, 50)}


def draw(path: Path, names: tuple[str, ...] = (), seed: int = 0, size: tuple[int, int] = (96, 72)) -> Path:
    """An image with one coloured patch a class, on noise that makes its content its own."""
    noise = np.random.default_rng(seed).integers(150, 190, (size[1], size[0], 3), dtype=np.uint8)
    for name in names:
        left = CLASSES.index(name) * size[0] // len(CLASSES)
        noise[size[1] // 4 : size[1] * 3 // 4, left + 4 : left + size[0] // len(CLASSES) - 4] = COLOURS[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise).save(path, quality=95)
    return path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder with 24 images, one in a subfolder."""
    folder = tmp_path / "photos"
    for number in range(24):
        names = tuple(name for bit, name in enumerate(CLASSES) if (number + 1) >> bit & 1)
        draw(folder / ("deep/23.png" if number == 23 else f"{number:02}.jpg"), names, seed=number)
    return folder


@pytest.fixture
def class_file(tmp_path: Path) -> Path:
    path = tmp_path / "classes.txt"
    path.write_text("fox\nheron\tgrey, with a long neck\ndeer\n")
    return path


@pytest.fixture
def project(tmp_path: Path, photos: Path, class_file: Path) -> Path:
    """A project of the 24 images and 3 classes."""
    set_up(tmp_path / "project", images_folder=photos, class_file=class_file)
    return tmp_path / "project"


@pytest.fixture
def db(project: Path) -> Database:
    return Database(project)


@pytest.fixture
def annotator(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs the command line in a process of its own."""

    def run(*words: object, code: int = 0) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "annotator", *map(str, words)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen]]:
    """Processes that a test started: none outlives it."""
    started: list[subprocess.Popen] = []
    yield started
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture(autouse=True)
def quiet_threads() -> None:
    """Two cores are shared by test processes, servers, workers and browsers."""
    os.environ.setdefault("OMP_NUM_THREADS", "2")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One real Chromium for all tests that need it."""
    from get_chromium import get_chromium

    get_chromium()
    with chromium() as one:
        yield one

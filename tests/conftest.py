"""Small real projects: drawn images in a temporary folder, a real SQLite file, the real command line."""

import gc
import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import needed  # noqa: F401 - first: it ends pytest where packages are missing
import numpy as np
import pytest
from harness.browser import open_chromium
from harness.contexts import Contexts
from PIL import Image
from run_failed_again import pytest_sessionfinish  # noqa: F401 - a hook

from annotator.__main__ import main
from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a test process, its servers, workers and browser share two cores

CLASSES = ("fox", "heron", "deer")
COLORS = {"fox": (210, 90, 30), "heron": (90, 130, 200), "deer": (120, 85, 50)}


def draw(path: Path, names: tuple[str, ...] = (), seed: int = 0, size: tuple[int, int] = (96, 72)) -> Path:
    """An image with one coloured patch a class, on noise that makes its content its own."""
    noise = np.random.default_rng(seed).integers(150, 190, (size[1], size[0], 3), dtype=np.uint8)
    for name in names:
        left = CLASSES.index(name) * size[0] // len(CLASSES)
        noise[size[1] // 4 : size[1] * 3 // 4, left + 4 : left + size[0] // len(CLASSES) - 4] = COLORS[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise).save(path, quality=95)
    return path


@pytest.fixture(scope="session")
def drawn_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    for number in range(24):
        names = tuple(name for bit, name in enumerate(CLASSES) if (number + 1) >> bit & 1)
        draw(folder / ("deep/23.png" if number == 23 else f"{number:02}.jpg"), names, seed=number)
    return folder


@pytest.fixture
def photos(tmp_path: Path, drawn_photos: Path) -> Path:
    """A folder with 24 images, one in a subfolder."""
    return shutil.copytree(drawn_photos, tmp_path / "photos", copy_function=shutil.copy)


@pytest.fixture
def class_file(tmp_path: Path) -> Path:
    path = tmp_path / "classes.txt"
    path.write_text("fox\nheron\tgrey, with a long neck\ndeer\n")
    return path


@pytest.fixture
def project(tmp_path: Path, photos: Path, class_file: Path) -> Path:
    """A project of the 24 images and 3 classes."""
    set_up_project(tmp_path / "project", images_folder=photos, class_file=class_file)
    return tmp_path / "project"


@pytest.fixture
def db(project: Path) -> Database:
    return Database(project)


@dataclass(frozen=True)
class Done:
    """What a command that has ended printed."""

    stdout: str
    stderr: str


@pytest.fixture
def annotator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Runs the command line in this process, in the test's folder."""

    def run(*words: object, code: int = 0) -> Done:
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        mask = os.umask(0)
        os.umask(mask)
        status = 0
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", ["annotator", *map(str, words)])
            patch.setenv("PYTHONSAFEPATH", "1")  # which main sets
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            try:
                main()
            except SystemExit as ended:
                status = ended.code or 0
            finally:
                os.umask(mask)
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        done = Done(*(stream.buffer.getvalue().decode() for stream in streams))
        assert status == code, f"{words}: {status}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture
def annotator_process(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs the command line in a process of its own."""

    def run(*words: object, code: int = 0) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "annotator", *map(str, words)],
            capture_output=True,
            text=True,
            timeout=300,
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


@pytest.fixture(scope="session")
def contexts() -> Iterator[Contexts]:
    """One real Chromium for all tests that need it."""
    from get_chromium import get_chromium

    get_chromium()
    with open_chromium() as started:
        yield Contexts(started)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Threads that wait for each other make tiny batches ten times slower when anything else wants the cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def browser(contexts: Contexts) -> Iterator[Contexts]:
    """The browser of one test: what it opens is closed when it ends."""
    yield contexts
    contexts.give_all_back()


# -- which tests are which

MARKED_BY_FIXTURE = {"contexts": "browser", "processes": "process", "annotator_process": "process"}
STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.spawn", "os.system")
_running: list[pytest.Item] = []
_started: set[str] = set()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, and begin with those that take longest: no worker is left with one alone."""
    for item in items:
        for fixture, mark in MARKED_BY_FIXTURE.items():
            if fixture in item.fixturenames:
                item.add_marker(mark)
    by_file: dict[Path, list[str]] = {}
    for item in items:
        by_file.setdefault(item.path, []).extend(mark.name for mark in item.iter_markers())
    items.sort(key=lambda item: ("browser" not in by_file[item.path], "process" not in by_file[item.path]))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> object:
    """What is imported stays: looking through it for garbage takes a third of the time of importing all tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else modules say at the end of the process that they are not taken down


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> object:
    _running[:] = [item]
    try:
        return (yield)
    finally:
        _running.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> object:
    """Fail a test that has started a process and is not marked so: `make check` has neither."""
    result = yield
    marked = {mark.name for mark in item.iter_markers()} & {"browser", "process"}
    assert marked or item.nodeid not in _started, "it starts processes: mark it with pytest.mark.process"
    return result


def _note_start(event: str, arguments: tuple) -> None:
    # torch, imported for the first time, has ctypes ask ldconfig where libraries lie.
    if event in STARTS and _running and "ldconfig" not in str(arguments):
        _started.add(_running[0].nodeid)


sys.addaudithook(_note_start)

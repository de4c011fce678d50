"""Rows about the Annotate page: keys and clicks, many classes, a worker in training, four people, a thousand images."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from annotator.benchmark.harness import projects
from annotator.benchmark.harness.browser import chromium
from annotator.benchmark.harness.processes import python, say, serve_floor, serve_page, wait_for
from annotator.benchmark.interface import bursts, presses
from annotator.benchmark.interface.ground import Ground
from annotator.benchmark.interface.presses import PICTURE_FIRST, WARM_UP
from annotator.store.classes import classes
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.runs import runs

if TYPE_CHECKING:
    from playwright.sync_api import Page

FEW = 20  # classes
BURST = 60  # keys
PEOPLE = 4
PAUSE_OF_PEOPLE = (0.2, 0.5)  # seconds between an image and the key: two to four images a second each
BEAT = 0.125  # seconds: eight images a second, as fast as hands go on
LONG = 1000  # images at that pace, when a row has 60 presses
STALL = 100.0  # milliseconds
TURNS = 4  # how often the pages take turns in those images
RUNS_BEFORE = 3  # by the third run the worker has loaded all it needs, and has drawn heat maps


def key_and_click(ground: Ground) -> tuple[dict, dict]:
    """Measure a key and a click, with 20 classes."""
    return _with_classes(ground, FEW, "")


def classes_300(ground: Ground) -> tuple[dict, dict]:
    """Measure a key and a click, with 300 classes."""
    return _with_classes(ground, 300, "300_classes_")


def classes_1000(ground: Ground) -> tuple[dict, dict]:
    """Measure a key and a click, with 1,000 classes."""
    return _with_classes(ground, 1000, "1000_classes_")


def training(ground: Ground) -> tuple[dict, dict]:
    """Measure a key and a click while a worker trains and draws heat maps without end, in the floor's turns, too."""
    db = projects.make_project(ground.room("training"), _images(2 * ground.keys), FEW)
    projects.save_noise_as_features(db)
    with _pages(ground, db) as pages, _worker_that_trains(db) as published:
        figures, ratios = _key_and_click(ground, pages, "", "_training")
        return {**figures, "runs_published_in_training_rows": published()}, ratios


def people(ground: Ground) -> tuple[dict, dict]:
    """Measure a key of four people at once, each with their own browser; all use the same kind of page at a time."""
    db = projects.make_project(ground.room("people"), _images(PEOPLE * ground.keys), FEW)
    together = threading.Barrier(PEOPLE)

    with serve_floor(db) as floor, serve_page(db) as page:

        def times_of(number: int) -> dict[str, list[float]]:
            addresses = {"floor": f"{floor.address}/?classes={FEW}", "annotate": f"{page.address}/annotate"}
            try:
                with (
                    chromium() as browser,
                    presses.opened(
                        browser, addresses, "picture", db.paths.project, f"{presses.NAME} {number}"
                    ) as pages,
                ):
                    wait = lambda: together.wait(120)  # noqa: E731 - asked at each turn
                    how = {"pause": PAUSE_OF_PEOPLE, "seed": number, "before_turn": wait}
                    return presses.in_turns(pages, presses.class_key, ground.keys, **how)
            except BaseException:
                together.abort()  # or the others would wait for this one
                raise

        with ThreadPoolExecutor(PEOPLE) as pool:
            all_times = list(pool.map(times_of, range(PEOPLE)))
    merged = {name: [each for times in all_times for each in times[name]] for name in all_times[0]}
    return presses.compared(f"key_{PEOPLE}_people", merged)


def pace(ground: Ground) -> tuple[dict, dict]:
    """Press keys at eight a second, whatever the page does; count late and missing pictures."""
    count = TURNS * round(LONG * ground.keys / 60 / TURNS)
    db = projects.make_project(ground.room("pace"), count + WARM_UP + projects.IN_HAND, FEW)
    figures: dict[str, float] = {"pace_images": count}
    times: dict[str, list[float]] = {}
    with _pages(ground, db, PICTURE_FIRST) as pages:
        for turn in range(TURNS):
            for name in sorted(pages, reverse=bool(turn % 2)):
                times.setdefault(name, []).extend(_at_a_pace(pages[name], count // TURNS))
        for name, page in pages.items():
            pressed = page.evaluate("benchmark.presses")
            figures |= {
                f"{name}_pace_max_ms": round(max(times[name]), 1),
                f"{name}_pace_stalls": sum(milliseconds > STALL for milliseconds in times[name]),
                f"{name}_pace_without_picture": sum(press["before"] is None for press in pressed),
            }
    compared, ratios = presses.compared("pace", times)
    return figures | compared, ratios


def burst(ground: Ground) -> tuple[dict, dict]:
    """Press sixty keys, 20 ms apart."""
    db = projects.make_project(ground.room("burst"), BURST + projects.IN_HAND, FEW)
    with (
        serve_page(db) as page,
        presses.opened(ground.browser, {"annotate": f"{page.address}/annotate"}, "picture", db.paths.project) as pages,
    ):
        keys = [presses.KEYS[number % FEW] for number in range(BURST)]
        return bursts.on_annotate(pages["annotate"], db, keys).figures("burst"), {}


def _with_classes(ground: Ground, class_count: int, size: str) -> tuple[dict, dict]:
    db = projects.make_project(ground.room(f"{class_count}-classes"), _images(2 * ground.keys), class_count)
    # With a run the page has more to do: it ranks the classes for each image.
    count = len(list((db.paths.project.parent / "images").iterdir()))
    projects.publish_run(db, np.random.default_rng(0).random((count, class_count)))
    with _pages(ground, db) as pages:
        return _key_and_click(ground, pages, size, "")


def _key_and_click(ground: Ground, pages: dict[str, "Page"], size: str, condition: str) -> tuple[dict, dict]:
    keyed = presses.compared(f"{size}key{condition}", presses.in_turns(pages, presses.class_key, ground.keys))
    # Keys are enough for the second floor: clicks on it would only take time.
    pages = {name: page for name, page in pages.items() if name != PICTURE_FIRST}
    clicked = presses.compared(f"{size}click{condition}", presses.in_turns(pages, presses.class_click, ground.keys))
    return keyed[0] | clicked[0], keyed[1] | clicked[1]


def _at_a_pace(page: "Page", count: int) -> list[float]:
    """Return the milliseconds of presses at a fixed beat."""
    page.bring_to_front()
    first = page.evaluate("benchmark.ready()")
    page.wait_for_timeout(500)
    started = time.perf_counter()
    for number in range(count):
        time.sleep(max(0.0, started + number * BEAT - time.perf_counter()))
        presses.class_key(page, number)
    page.evaluate("number => benchmark.painted(number)", first + count - 1)
    say(f"{count} images at a pace of {1 / BEAT:.0f} a second")
    pressed = page.evaluate("first => benchmark.presses.slice(first)", first)
    return [press["milliseconds"] for press in pressed if press["milliseconds"] is not None]


def _images(keys: int) -> int:
    return keys + 2 * PEOPLE * WARM_UP + projects.IN_HAND


@contextmanager
def _pages(ground: Ground, db: Database, without: str = "") -> Iterator[dict[str, "Page"]]:
    """Open the floors and the Annotate page of a project side by side, and yield them once each shows a picture."""
    with serve_floor(db) as server, serve_page(db) as page:
        floor = f"{server.address}/?classes={len(classes.all_classes(db))}"
        addresses = {"floor": floor, PICTURE_FIRST: f"{floor}&first=picture", "annotate": f"{page.address}/annotate"}
        addresses.pop(without, None)
        with presses.opened(ground.browser, addresses, "picture", db.paths.project) as pages:
            yield pages


@contextmanager
def _worker_that_trains(db: Database) -> Iterator[Callable[[], int]]:
    """Run a worker that trains without end; yield a function that counts the runs published since."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.1):
            if not jobs.training_asked(db):
                jobs.ask_training(db)

    def newest() -> int:
        run = runs.current_run(db)
        return run.id if run else 0

    asking = threading.Thread(target=ask, daemon=True)
    with python("annotator", "worker", db.paths.project) as process:
        asking.start()
        try:
            wait_for(lambda: newest() >= RUNS_BEFORE or process.poll() is not None, "the worker's third run", 300)
            first = newest()
            yield lambda: newest() - first
        finally:
            over.set()
            asking.join()

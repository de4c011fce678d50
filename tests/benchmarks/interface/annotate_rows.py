"""Rows about the Annotate page: keys and clicks, many classes, a worker in training, four people, a thousand images."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from harness import projects
from harness.browser import open_chromium
from harness.child_processes import run_module, serve_floor, serve_page, wait_for

from annotator.benchmark.scratch import print_progress
from annotator.store.classes import classes
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.runs import runs
from benchmarks.interface import bursts, presses
from benchmarks.interface.ground import Ground
from benchmarks.interface.presses import PICTURE_FIRST, WARM_UP

if TYPE_CHECKING:
    from playwright.sync_api import Page

FEW_CLASSES = 20  # classes
BURST_KEYS = 60  # keys
PEOPLE_AT_ONCE = 4
PEOPLE_PAUSE_SECONDS = (0.2, 0.5)  # between an image and the key: two to four images a second each
BEAT_SECONDS = 0.125  # seconds: eight images a second, as fast as hands go on
PACED_IMAGES = 1000  # images at that pace, when a row has 60 presses
STALL_MILLISECONDS = 100.0
PACE_TURNS = 4  # how often the pages take turns in those images
RUNS_BEFORE = 3  # by the third run the worker has loaded all it needs, and has drawn heat maps


def measure_key_and_click(ground: Ground) -> tuple[dict, dict]:
    """Measure a key and a click, with 20 classes."""
    return _measure_class_count(ground, FEW_CLASSES, "")


def measure_300_classes(ground: Ground) -> tuple[dict, dict]:
    """Measure a key and a click, with 300 classes."""
    return _measure_class_count(ground, 300, "300_classes_")


def measure_1000_classes(ground: Ground) -> tuple[dict, dict]:
    """Measure a key and a click, with 1,000 classes."""
    return _measure_class_count(ground, 1000, "1000_classes_")


def measure_training(ground: Ground) -> tuple[dict, dict]:
    """Measure a key and a click while a worker trains and draws heat maps without end, in the floor's turns, too."""
    db = projects.make_project(ground.make_folder("training"), _count_images(2 * ground.keys), FEW_CLASSES)
    projects.save_noise_as_features(db)
    with _open_pages(ground, db) as pages, _run_training_worker(db) as published:
        figures, ratios = _measure_presses(ground, pages, "", "_training")
        return {**figures, "runs_published_in_training_rows": published()}, ratios


def measure_people(ground: Ground) -> tuple[dict, dict]:
    """Measure a key of four people at once, each with their own browser; all use the same kind of page at a time."""
    db = projects.make_project(ground.make_folder("people"), _count_images(PEOPLE_AT_ONCE * ground.keys), FEW_CLASSES)
    together = threading.Barrier(PEOPLE_AT_ONCE)

    with serve_floor(db) as floor, serve_page(db) as page:

        def times_of(number: int) -> dict[str, list[float]]:
            addresses = {"floor": f"{floor.address}/?classes={FEW_CLASSES}", "annotate": f"{page.address}/annotate"}
            try:
                with (
                    open_chromium() as browser,
                    presses.open_pages(
                        browser, addresses, "picture", db.paths.project, f"{presses.BENCH_ANNOTATOR} {number}"
                    ) as pages,
                ):
                    wait = lambda: together.wait(120)  # noqa: E731 - asked at each turn
                    how = {"pause": PEOPLE_PAUSE_SECONDS, "seed": number, "before_turn": wait}
                    return presses.press_in_turns(pages, presses.press_class_key, ground.keys, **how)
            except BaseException:
                together.abort()  # or the others would wait for this one
                raise

        with ThreadPoolExecutor(PEOPLE_AT_ONCE) as pool:
            all_times = list(pool.map(times_of, range(PEOPLE_AT_ONCE)))
    merged = {name: [each for times in all_times for each in times[name]] for name in all_times[0]}
    return presses.compare_times(f"key_{PEOPLE_AT_ONCE}_people", merged)


def measure_pace(ground: Ground) -> tuple[dict, dict]:
    """Press keys at eight a second, whatever the page does; count late and missing pictures."""
    count = PACE_TURNS * round(PACED_IMAGES * ground.keys / 60 / PACE_TURNS)
    db = projects.make_project(ground.make_folder("pace"), count + WARM_UP + projects.IMAGES_IN_HAND, FEW_CLASSES)
    figures: dict[str, float] = {"pace_images": count}
    times: dict[str, list[float]] = {}
    with _open_pages(ground, db, PICTURE_FIRST) as pages:
        for turn in range(PACE_TURNS):
            for name in sorted(pages, reverse=bool(turn % 2)):
                times.setdefault(name, []).extend(_press_at_pace(pages[name], count // PACE_TURNS))
        for name, page in pages.items():
            pressed = page.evaluate("benchmark.presses")
            figures |= {
                f"{name}_pace_max_ms": round(max(times[name]), 1),
                f"{name}_pace_stalls": sum(milliseconds > STALL_MILLISECONDS for milliseconds in times[name]),
                f"{name}_pace_without_picture": sum(press["before"] is None for press in pressed),
            }
    compared, ratios = presses.compare_times("pace", times)
    return figures | compared, ratios


def measure_burst(ground: Ground) -> tuple[dict, dict]:
    """Press sixty keys, 20 ms apart."""
    db = projects.make_project(ground.make_folder("burst"), BURST_KEYS + projects.IMAGES_IN_HAND, FEW_CLASSES)
    with (
        serve_page(db) as page,
        presses.open_pages(
            ground.browser, {"annotate": f"{page.address}/annotate"}, "picture", db.paths.project
        ) as pages,
    ):
        keys = [presses.CLASS_KEYS[number % FEW_CLASSES] for number in range(BURST_KEYS)]
        return bursts.press_class_keys(pages["annotate"], db, keys).build_figures("burst"), {}


def _measure_class_count(ground: Ground, class_count: int, size: str) -> tuple[dict, dict]:
    db = projects.make_project(
        ground.make_folder(f"{class_count}-classes"), _count_images(2 * ground.keys), class_count
    )
    # With a run the page has more to do: it ranks the classes for each image.
    count = len(list((db.paths.project.parent / "images").iterdir()))
    projects.publish_run(db, np.random.default_rng(0).random((count, class_count)))
    with _open_pages(ground, db) as pages:
        return _measure_presses(ground, pages, size, "")


def _measure_presses(ground: Ground, pages: dict[str, "Page"], size: str, condition: str) -> tuple[dict, dict]:
    keyed = presses.compare_times(
        f"{size}key{condition}", presses.press_in_turns(pages, presses.press_class_key, ground.keys)
    )
    # Keys are enough for the second floor: clicks on it would only take time.
    pages = {name: page for name, page in pages.items() if name != PICTURE_FIRST}
    clicked = presses.compare_times(
        f"{size}click{condition}", presses.press_in_turns(pages, presses.click_class, ground.keys)
    )
    return keyed[0] | clicked[0], keyed[1] | clicked[1]


def _press_at_pace(page: "Page", count: int) -> list[float]:
    """Return the milliseconds of presses at a fixed beat."""
    page.bring_to_front()
    first = page.evaluate("benchmark.ready()")
    page.wait_for_timeout(500)
    started = time.perf_counter()
    for number in range(count):
        time.sleep(max(0.0, started + number * BEAT_SECONDS - time.perf_counter()))
        presses.press_class_key(page, number)
    page.evaluate("number => benchmark.painted(number)", first + count - 1)
    print_progress(f"{count} images at a pace of {1 / BEAT_SECONDS:.0f} a second")
    pressed = page.evaluate("first => benchmark.presses.slice(first)", first)
    return [press["milliseconds"] for press in pressed if press["milliseconds"] is not None]


def _count_images(keys: int) -> int:
    return keys + 2 * PEOPLE_AT_ONCE * WARM_UP + projects.IMAGES_IN_HAND


@contextmanager
def _open_pages(ground: Ground, db: Database, without: str = "") -> Iterator[dict[str, "Page"]]:
    """Open the floors and the Annotate page of a project side by side, and yield them once each shows a picture."""
    with serve_floor(db) as server, serve_page(db) as page:
        floor = f"{server.address}/?classes={len(classes.load_active_classes(db))}"
        addresses = {"floor": floor, PICTURE_FIRST: f"{floor}&first=picture", "annotate": f"{page.address}/annotate"}
        addresses.pop(without, None)
        with presses.open_pages(ground.browser, addresses, "picture", db.paths.project) as pages:
            yield pages


@contextmanager
def _run_training_worker(db: Database) -> Iterator[Callable[[], int]]:
    """Run a worker that trains without end; yield a function that counts the runs published since."""
    over = threading.Event()

    def request_trainings() -> None:
        while not over.wait(0.1):
            if not jobs.is_training_requested(db):
                jobs.request_training(db)

    def get_newest_run_id() -> int:
        run = runs.load_current_run(db)
        return run.id if run else 0

    asking = threading.Thread(target=request_trainings, daemon=True)
    with run_module("annotator", "worker", db.paths.project) as process:
        asking.start()
        try:
            wait_for(
                lambda: get_newest_run_id() >= RUNS_BEFORE or process.poll() is not None, "the worker's third run", 300
            )
            first = get_newest_run_id()
            yield lambda: get_newest_run_id() - first
        finally:
            over.set()
            asking.join()

"""Rows about Grid, Review and the first page after a start."""

import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import projects
from harness.browser import sign_in_context
from harness.child_processes import LOCAL_ADDRESS, build_floor_command, free_port, run_server, serve_floor, serve_page

from annotator.benchmark.scratch import print_progress
from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from benchmarks.interface import bursts, presses
from benchmarks.interface.ground import Ground
from benchmarks.interface.presses import BENCH_ANNOTATOR, PICTURE_FIRST, WARM_UP
from benchmarks.interface.probe import PROBE_SCRIPT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FEW_CLASSES = 20  # classes
TILES_PER_GRID = 24
GRIDS_IN_HAND = 40  # grids beyond those that are decided
GRID_PAUSE_SECONDS = (0.75, 1.25)  # seconds: in less nobody has seen 24 pictures, and nothing is saved
GRID_BURST = 12  # presses of Enter
REVIEW_BURST = 60  # keys
SUGGESTIONS_PER_IMAGE = 4  # suggestions of an image, where there are several
FIRST_PAGE_IMAGES = 1000
SERVER_STARTS = 5


def measure_grid(ground: Ground) -> tuple[dict, dict]:
    """Measure Enter on a grid of 24 until the next grid is complete; and Enter twelve times, 20 ms apart."""
    count = TILES_PER_GRID * (ground.keys + WARM_UP + GRID_BURST + GRIDS_IN_HAND)
    db = projects.make_project(ground.make_folder("grid"), count, FEW_CLASSES)
    projects.publish_run(db, np.random.default_rng(0).uniform(0.55, 0.99, (count, FEW_CLASSES)))
    with serve_floor(db) as server, serve_page(db) as page:
        floor = f"{server.address}/?kind=grid"
        addresses = {"floor": floor, PICTURE_FIRST: f"{floor}&first=picture", "grid": f"{page.address}/grid"}
        with presses.open_pages(ground.browser, addresses, "grid", db.paths.project) as pages:
            times = presses.press_in_turns(
                pages, presses.build_key_press("Enter"), ground.keys, pause=GRID_PAUSE_SECONDS
            )
            figures, ratios = presses.compare_times("enter", times, frames=True)
            burst = bursts.press_enter(pages["grid"], db, GRID_BURST)
    return figures | burst.build_figures("grid_burst"), ratios


def measure_review(ground: Ground) -> tuple[dict, dict]:
    """Measure Accept until the next image, another suggestion until its heat map, and sixty answers, 20 ms apart."""
    single = _make_review_project(ground, "review", ground.keys + WARM_UP + projects.IMAGES_IN_HAND, 1)
    several = _make_review_project(ground, "heat", REVIEW_BURST + projects.IMAGES_IN_HAND, SUGGESTIONS_PER_IMAGE)
    with serve_floor(single) as server:
        floor = f"{server.address}/?kind=review"
        floors = {"floor": floor, PICTURE_FIRST: f"{floor}&first=picture"}
        with serve_page(single) as page:
            addresses = {**floors, "review": f"{page.address}/review"}
            with presses.open_pages(ground.browser, addresses, "picture", single.paths.project) as pages:
                times = presses.press_in_turns(
                    pages, presses.build_key_press("y"), ground.keys, pause=presses.REPEAT_PAUSE_SECONDS
                )
                accepted = presses.compare_times("accept", times)
        with serve_page(several) as page:
            ours = {"review": f"{page.address}/review"}
            with presses.open_pages(ground.browser, {"floor": floor, **ours}, "heat", several.paths.project) as pages:
                times = presses.press_in_turns(pages, _build_alternating_press(), ground.keys)
                seen = presses.compare_times("heatmap", times, frames=True)
            with presses.open_pages(ground.browser, ours, "picture", several.paths.project) as pages:
                burst = bursts.press_answers(pages["review"], several, REVIEW_BURST)
    return accepted[0] | seen[0] | burst.build_figures("review_burst"), accepted[1] | seen[1]


def measure_first_page(ground: Ground) -> tuple[dict, dict]:
    """Measure `annotator serve` on 1,000 images until the first image, a bare Streamlit page, and a bare server."""
    db = projects.make_project(ground.make_folder("first-page"), FIRST_PAGE_IMAGES, FEW_CLASSES)
    ours = ("annotator", "serve", db.paths.project, "--no-browser", "--port")
    rivals: dict[str, Callable[[], float]] = {
        "annotate": lambda: _time_start(ground.browser, ours, "picture", db.paths.project),
        "buttons": lambda: _time_start(ground.browser, ours, "buttons", db.paths.project),
        "streamlit": lambda: _time_start(ground.browser, _build_streamlit_command(db), "streamlit"),
        "floor": lambda: _time_start(ground.browser, build_floor_command(db), "picture"),
        "import_streamlit": _time_streamlit_import,
    }
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(SERVER_STARTS):
        for name, run in rivals.items():
            seconds[name].append(run())
    figures = {f"{name}_first_page_p50_seconds": round(statistics.median(each), 3) for name, each in seconds.items()}
    figures |= {f"{name}_first_page_min_seconds": round(min(each), 3) for name, each in seconds.items()}
    figures["annotate_first_page_max_seconds"] = round(max(seconds["annotate"]), 3)
    middle = statistics.median(seconds["annotate"])
    ratios = {
        f"annotate_first_page_over_{name}": round(middle / statistics.median(seconds[name]), 3)
        for name in ("streamlit", "floor", "import_streamlit")
    }
    ratios["annotate_first_page_min_over_streamlit"] = round(min(seconds["annotate"]) / min(seconds["streamlit"]), 3)
    print_progress(
        "first page: " + ", ".join(f"{name} {statistics.median(each):.2f} s" for name, each in seconds.items())
    )
    return figures, ratios


def _make_review_project(ground: Ground, name: str, count: int, chips: int) -> Database:
    """Make a project whose images have `chips` suggestions each, with heat maps."""
    db = projects.make_project(ground.make_folder(name), count, FEW_CLASSES)
    probabilities = np.full((count, FEW_CLASSES), 0.02)
    chance = np.random.default_rng(0)
    suggested = chance.permuted(np.broadcast_to(np.arange(FEW_CLASSES) < chips, (count, FEW_CLASSES)), axis=1)
    probabilities[suggested] = chance.uniform(0.91, 0.99, suggested.sum())
    projects.draw_heatmaps(db, projects.publish_run(db, probabilities), suggested)
    return db


def _build_alternating_press() -> presses.Press:
    """Return presses of 2, 1, 2, ... on each page: each requests the heat map that is not shown."""
    pressed: Counter[Page] = Counter()

    def press(page: "Page", number: int) -> None:
        pressed[page] += 1
        page.keyboard.press("12"[pressed[page] % 2])

    return press


def _build_streamlit_command(db: Database) -> tuple[Any, ...]:
    """Write a Streamlit script with an image and a button for each class, and return the command that runs it."""
    folder = db.paths.project.parent
    script = folder / "bare_page.py"
    script.write_text(
        f"""import streamlit as st
st.image({str(next((folder / "images").iterdir()))!r})
for number in range({FEW_CLASSES}):
    st.button(f"class {{number}}")
"""
    )
    options = ("--server.headless=true", "--browser.gatherUsageStats=false", "--server.address=127.0.0.1")
    return "streamlit", "run", script, *options, "--server.port"


def _time_start(browser: "Browser", command: tuple[Any, ...], watch: str, project: Path | None = None) -> float:
    """Return the seconds from the start of a server process to what is watched for, in a browser that is open.

    Args:
        watch: What the page is watched for, a name in probe.py.
    """
    port = free_port()
    address = f"http://{LOCAL_ADDRESS}:{port}"
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        context.add_init_script(PROBE_SCRIPT)
        if project is not None:
            sign_in_context(context, project, address, BENCH_ANNOTATOR)
        page = context.new_page()
        started = time.perf_counter()
        with run_server(*command, port=port, pause=0.01):
            page.goto(address if project is None else f"{address}/annotate")
            page.evaluate("(watch) => { benchmark.watch = watch; return benchmark.ready(); }", watch)
            return time.perf_counter() - started
    finally:
        context.close()


def _time_streamlit_import() -> float:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-P", "-c", "import streamlit"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AnnotatorError(f"Streamlit cannot be imported:\n{done.stderr[-2000:]}")
    return time.perf_counter() - started

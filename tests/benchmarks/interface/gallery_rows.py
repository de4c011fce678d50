"""The row about the Gallery: scrolling through a million images, and 500 cells that are changed at once.

Of the million images the first IMAGE_FILES by name are files, so that the thumbnails in sight are real; all others are
rows.
The floor is a plain page with those files alone, all of them in its document: the browser does the rest.
"""

import random
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from harness import bulk, projects
from harness.child_processes import serve_floor, serve_page

from annotator.benchmark.scratch import print_progress
from benchmarks.interface import presses
from benchmarks.interface.ground import Ground
from benchmarks.interface.presses import FRAME_MILLISECONDS, PICTURE_FIRST

if TYPE_CHECKING:
    from playwright.sync_api import Page

PROJECT_CLASSES = 20
IMAGE_FILES = 800  # more than the wheel comes to
LISTED_IMAGES = 1_000_000
NOTCH_PIXELS = 120  # CSS pixels of one step of a wheel
BEAT_MILLISECONDS = 30  # milliseconds between two steps: a quick hand
WHEEL_STEPS = 150
SCROLL_TURNS = 2  # of each page, in which so many steps are made
IN_TIME_MILLISECONDS = 1.1 * FRAME_MILLISECONDS  # a frame of its time; time stamps of frames differ by a fraction
SCROLL_BAR_JUMPS = 12  # drags of the scroll bar
BATCH_CELLS = 500  # cells
BATCH_PAUSE_SECONDS = (0.3, 0.6)  # seconds: nobody chooses classes for 500 images in less
CHOICE_PAUSE_MILLISECONDS = 300  # milliseconds between the choice of a class and the key

# Time stamps of frames, and how far the list moved in each, until it is stopped.
WATCH_FRAMES_SCRIPT = """(list) => {
  const frames = [];
  const look = (at) => { frames.push([at, list.scrollTop]); if (window.watching) requestAnimationFrame(look); };
  window.watching = true;
  window.frames_seen = frames;
  requestAnimationFrame(look);
}"""
STOP_WATCHING_SCRIPT = "() => { window.watching = false; return window.frames_seen; }"
# A drag of the scroll bar to there, until every tile in sight has its name.
JUMP_SCRIPT = """async (list, share) => {
  const began = performance.now();
  list.scrollTop = share * (list.scrollHeight - list.clientHeight);
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  do await frame(); while (list.querySelector(".empty-thumb") && performance.now() - began < 15000);
  return performance.now() - began;
}"""


def measure_gallery(ground: Ground) -> tuple[dict, dict]:
    """Measure scrolling by wheel and by scroll bar in a list of a million images, and Ctrl+Enter on 500 images."""
    scrolled, batched = _measure_scrolling(ground), _measure_batches(ground)
    return scrolled[0] | batched[0], scrolled[1] | batched[1]


def _measure_scrolling(ground: Ground) -> tuple[dict, dict]:
    db = projects.make_project(ground.make_folder("gallery"), IMAGE_FILES, PROJECT_CLASSES)
    print_progress(f"making {LISTED_IMAGES:,} images")
    bulk.add_images(db, db.paths.project.parent, range(IMAGE_FILES + 1, LISTED_IMAGES + 1))
    with serve_floor(db) as floor, serve_page(db) as served:
        addresses = {"floor": f"{floor.address}/?kind=gallery", "gallery": f"{served.address}/gallery"}
        with presses.open_pages(ground.browser, addresses, "gallery", db.paths.project) as pages:
            between: dict[str, list[float]] = {name: [] for name in pages}
            jumps: dict[str, list[float]] = {name: [] for name in pages}
            for turn in range(SCROLL_TURNS):
                for name in sorted(pages, reverse=bool(turn % 2)):
                    between[name] += _time_scroll_frames(pages[name], WHEEL_STEPS // SCROLL_TURNS)
            chance = random.Random(0)
            for share in (chance.random() for _ in range(SCROLL_BAR_JUMPS)):
                for name, page in pages.items():
                    page.bring_to_front()
                    jumps[name].append(page.locator(".scroller").evaluate(JUMP_SCRIPT, share))
    figures, ratios = presses.compare_times("scroll_frame", between)
    jumped = presses.compare_times("jump", jumps)
    figures |= jumped[0]
    for name, each in between.items():
        figures |= {
            f"{name}_scroll_frames": len(each),
            f"{name}_scroll_in_time_percent": round(100 * float(np.mean(np.array(each) <= IN_TIME_MILLISECONDS)), 1),
            f"{name}_scroll_frame_max_ms": round(max(each), 1),
        }
        print_progress(
            f"{name}: {len(each)} frames of scrolling, {figures[f'{name}_scroll_in_time_percent']} % in time"
        )
    return figures, ratios | jumped[1]


def _time_scroll_frames(page: "Page", steps: int) -> list[float]:
    """Return the milliseconds between the frames in which the list moved while a wheel was turned."""
    page.bring_to_front()
    page.wait_for_load_state("networkidle")
    page.locator(".scroller").hover()
    page.locator(".scroller").evaluate(WATCH_FRAMES_SCRIPT)
    for _ in range(steps):
        page.mouse.wheel(0, NOTCH_PIXELS)
        page.wait_for_timeout(BEAT_MILLISECONDS)
    frames = np.array(page.evaluate(STOP_WATCHING_SCRIPT))
    return np.diff(frames[:, 0])[np.diff(frames[:, 1]) != 0].tolist()


def _measure_batches(ground: Ground) -> tuple[dict, dict]:
    db = projects.make_project(ground.make_folder("gallery-batch"), BATCH_CELLS, PROJECT_CLASSES)
    with serve_floor(db) as floor, serve_page(db) as served:
        plain = f"{floor.address}/?kind=gallery"
        ours = f"{served.address}/gallery"
        addresses = {"floor": plain, PICTURE_FIRST: f"{plain}&first=picture", "gallery": ours}
        with presses.open_pages(ground.browser, addresses, "gallery", db.paths.project) as pages:
            pages["gallery"].bring_to_front()
            pages["gallery"].wait_for_load_state("networkidle")
            pages["gallery"].keyboard.press("Control+a")
            pages["gallery"].locator(".panel h3", has_text=f"{BATCH_CELLS} selected").wait_for()
            press = _build_class_press([(1 + number, state) for state in (1, -1) for number in range(PROJECT_CLASSES)])
            times = presses.press_in_turns(pages, press, ground.keys, pause=BATCH_PAUSE_SECONDS)
    return presses.compare_times(f"batch_{BATCH_CELLS}", times)


def _build_class_press(cells: Sequence[tuple[int, int]]) -> presses.Press:
    """Return a press of Ctrl+Enter for a class and state selected just before, in turn; floors have none to select."""
    numbers = count()

    def press(page: "Page", number: int) -> None:
        if page.locator(".panel").count():
            class_id, state = cells[next(numbers) % len(cells)]
            button = page.locator(f'.panel [data-class="{class_id}"][data-state="{state}"]')
            button.evaluate("button => button.click()")
        page.wait_for_timeout(CHOICE_PAUSE_MILLISECONDS)
        page.keyboard.press("Control+Enter")

    return press

"""The row about the Gallery: scrolling through a million images, and 500 cells that are changed at once.

Of the million images the first FILES by name are files, so that the thumbnails in sight are real; all others are rows.
The floor is a plain page with those files alone, all of them in its document: the browser does the rest.
"""

import random
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from annotator.benchmark.harness import bulk, projects
from annotator.benchmark.harness.processes import say, serve_floor, serve_page
from annotator.benchmark.interface import presses
from annotator.benchmark.interface.ground import Ground
from annotator.benchmark.interface.presses import FRAME, PICTURE_FIRST

if TYPE_CHECKING:
    from playwright.sync_api import Page

CLASSES = 20
FILES = 800  # more than the wheel comes to
IMAGES = 1_000_000
NOTCH = 120  # CSS pixels of one step of a wheel
BEAT = 30  # milliseconds between two steps: a quick hand
STEPS = 150
TURNS = 2  # of each page, in which so many steps are made
WITHIN = 1.1 * FRAME  # a frame of its time; time stamps of frames differ by a fraction
JUMPS = 12  # drags of the scroll bar
BATCH = 500  # cells
PAUSE_OF_BATCHES = (0.3, 0.6)  # seconds: nobody chooses classes for 500 images in less
CHOSEN = 300  # milliseconds between the choice of a class and the key

# Time stamps of frames, and how far the list moved in each, until it is stopped.
FRAMES = """(list) => {
  const frames = [];
  const look = (at) => { frames.push([at, list.scrollTop]); if (window.watching) requestAnimationFrame(look); };
  window.watching = true;
  window.frames_seen = frames;
  requestAnimationFrame(look);
}"""
STOP = "() => { window.watching = false; return window.frames_seen; }"
# A drag of the scroll bar to there, until every tile in sight has its name.
JUMP = """async (list, share) => {
  const began = performance.now();
  list.scrollTop = share * (list.scrollHeight - list.clientHeight);
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  do await frame(); while (list.querySelector(".empty-thumb") && performance.now() - began < 15000);
  return performance.now() - began;
}"""


def gallery(ground: Ground) -> tuple[dict, dict]:
    """Measure scrolling by wheel and by scroll bar in a list of a million images, and Ctrl+Enter on 500 images."""
    scrolled, batched = _scrolling(ground), _batches(ground)
    return scrolled[0] | batched[0], scrolled[1] | batched[1]


def _scrolling(ground: Ground) -> tuple[dict, dict]:
    db = projects.make_project(ground.room("gallery"), FILES, CLASSES)
    say(f"making {IMAGES:,} images")
    bulk.add_images(db, db.paths.project.parent, range(FILES + 1, IMAGES + 1))
    with serve_floor(db) as floor, serve_page(db) as served:
        addresses = {"floor": f"{floor.address}/?kind=gallery", "gallery": f"{served.address}/gallery"}
        with presses.opened(ground.browser, addresses, "gallery", db.paths.project) as pages:
            between: dict[str, list[float]] = {name: [] for name in pages}
            jumps: dict[str, list[float]] = {name: [] for name in pages}
            for turn in range(TURNS):
                for name in sorted(pages, reverse=bool(turn % 2)):
                    between[name] += _frames(pages[name], STEPS // TURNS)
            chance = random.Random(0)
            for share in (chance.random() for _ in range(JUMPS)):
                for name, page in pages.items():
                    page.bring_to_front()
                    jumps[name].append(page.locator(".scroller").evaluate(JUMP, share))
    figures, ratios = presses.compared("scroll_frame", between)
    jumped = presses.compared("jump", jumps)
    figures |= jumped[0]
    for name, each in between.items():
        figures |= {
            f"{name}_scroll_frames": len(each),
            f"{name}_scroll_in_time_percent": round(100 * float(np.mean(np.array(each) <= WITHIN)), 1),
            f"{name}_scroll_frame_max_ms": round(max(each), 1),
        }
        say(f"{name}: {len(each)} frames of scrolling, {figures[f'{name}_scroll_in_time_percent']} % in time")
    return figures, ratios | jumped[1]


def _frames(page: "Page", steps: int) -> list[float]:
    """Return the milliseconds between the frames in which the list moved while a wheel was turned."""
    page.bring_to_front()
    page.wait_for_load_state("networkidle")
    page.locator(".scroller").hover()
    page.locator(".scroller").evaluate(FRAMES)
    for _ in range(steps):
        page.mouse.wheel(0, NOTCH)
        page.wait_for_timeout(BEAT)
    frames = np.array(page.evaluate(STOP))
    return np.diff(frames[:, 0])[np.diff(frames[:, 1]) != 0].tolist()


def _batches(ground: Ground) -> tuple[dict, dict]:
    db = projects.make_project(ground.room("gallery-batch"), BATCH, CLASSES)
    with serve_floor(db) as floor, serve_page(db) as served:
        plain = f"{floor.address}/?kind=gallery"
        ours = f"{served.address}/gallery"
        addresses = {"floor": plain, PICTURE_FIRST: f"{plain}&first=picture", "gallery": ours}
        with presses.opened(ground.browser, addresses, "gallery", db.paths.project) as pages:
            pages["gallery"].bring_to_front()
            pages["gallery"].wait_for_load_state("networkidle")
            pages["gallery"].keyboard.press("Control+a")
            pages["gallery"].locator(".panel h3", has_text=f"{BATCH} selected").wait_for()
            press = _set_a_class([(1 + number, state) for state in (1, -1) for number in range(CLASSES)])
            times = presses.in_turns(pages, press, ground.keys, pause=PAUSE_OF_BATCHES)
    return presses.compared(f"batch_{BATCH}", times)


def _set_a_class(cells: Sequence[tuple[int, int]]) -> presses.Press:
    """Return a press of Ctrl+Enter for a class and state selected just before, in turn; floors have none to select."""
    numbers = count()

    def press(page: "Page", number: int) -> None:
        if page.locator(".panel").count():
            class_id, state = cells[next(numbers) % len(cells)]
            button = page.locator(f'.panel [data-class="{class_id}"][data-state="{state}"]')
            button.evaluate("button => button.click()")
        page.wait_for_timeout(CHOSEN)
        page.keyboard.press("Control+Enter")

    return press

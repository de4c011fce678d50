"""The row about the Gallery: scrolling through a million images, and 500 cells that are changed at once.

Of the million images the first FILES by name are files, so that the thumbnails in sight are real; all others are rows.
"""

import random
from typing import TYPE_CHECKING

import numpy as np

from annotator.benchmark.harness import bulk, projects
from annotator.benchmark.harness.processes import say, serve_page
from annotator.benchmark.interface import presses
from annotator.benchmark.interface.ground import Ground
from annotator.benchmark.interface.presses import FRAME
from annotator.store.database import Database

if TYPE_CHECKING:
    from playwright.sync_api import Page

CLASSES = 20
FILES = 500
IMAGES = 1_000_000
NOTCH = 120  # CSS pixels of one step of a wheel
BEAT = 30  # milliseconds between two steps: a quick hand
STEPS = 150
WITHIN = 1.1 * FRAME  # a frame of its time; time stamps of frames differ by a fraction
JUMPS = 12  # drags of the scroll bar

# Time stamps of frames, and how far the list moved in each, until it is stopped.
FRAMES = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".scroller"));
  const list = host.shadowRoot.querySelector(".scroller");
  const frames = [];
  const look = (at) => { frames.push([at, list.scrollTop]); if (window.watching) requestAnimationFrame(look); };
  window.watching = true;
  window.frames_seen = frames;
  requestAnimationFrame(look);
}"""
STOP = "() => { window.watching = false; return window.frames_seen; }"
# A drag of the scroll bar to there, until every tile in sight has its name.
JUMP = """async (share) => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".scroller"));
  const list = host.shadowRoot.querySelector(".scroller");
  const began = performance.now();
  list.scrollTop = share * (list.scrollHeight - list.clientHeight);
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  do await frame(); while (list.querySelector(".empty-thumb") && performance.now() - began < 15000);
  return performance.now() - began;
}"""
CHOOSE = """([class_, state]) => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".panel"));
  host.shadowRoot.querySelector(`.panel [data-class="${class_}"][data-state="${state}"]`).click();
}"""


def gallery(ground: Ground) -> tuple[dict, dict]:
    """A wheel through the first rows of a million images, drags of the scroll bar, and Ctrl+Enter on 500 images."""
    figures = _scrolling(ground) | _batches(ground)
    return figures, {}


def _scrolling(ground: Ground) -> dict[str, float]:
    db = projects.make_project(ground.room("gallery"), FILES, CLASSES)
    say(f"making {IMAGES:,} images")
    bulk.add_images(db, db.paths.project.parent, range(FILES + 1, IMAGES + 1))
    with serve_page(db) as served, _opened(ground, db, f"{served.address}/gallery") as pages:
        page = pages["gallery"]
        page.wait_for_load_state("networkidle")
        _at_the_list(page)
        page.evaluate(FRAMES)
        for _ in range(STEPS):
            page.mouse.wheel(0, NOTCH)
            page.wait_for_timeout(BEAT)
        frames = np.array(page.evaluate(STOP))
        chance = random.Random(0)
        jumps = [page.evaluate(JUMP, chance.random()) for _ in range(JUMPS)]
    between = np.diff(frames[:, 0])[np.diff(frames[:, 1]) != 0]  # while it moved
    say(f"{len(between)} frames of scrolling, {np.mean(between <= WITHIN):.1%} in time")
    return {
        "gallery_scroll_frames": len(between),
        "gallery_scroll_in_time_percent": round(100 * float(np.mean(between <= WITHIN)), 1),
        "gallery_scroll_frame_p95_ms": round(float(np.percentile(between, 95)), 1),
        "gallery_scroll_frame_max_ms": round(float(between.max()), 1),
        "gallery_jump_p50_ms": round(float(np.percentile(jumps, 50)), 1),
        "gallery_jump_p95_ms": round(float(np.percentile(jumps, 95)), 1),
    }


def _batches(ground: Ground) -> dict[str, float]:
    db = projects.make_project(ground.room("gallery-batch"), FILES, CLASSES)
    with serve_page(db) as served, _opened(ground, db, f"{served.address}/gallery") as pages:
        page = pages["gallery"]
        page.wait_for_load_state("networkidle")
        page.keyboard.press("Control+a")
        page.locator(".panel h3", has_text=f"{FILES} selected").wait_for()
        chance = random.Random(0)
        times = []
        for number in range(ground.keys + presses.WARM_UP):
            page.evaluate(CHOOSE, [1 + number % CLASSES, (1, -1)[number // CLASSES % 2]])
            times.append(presses.timed(page, presses.key("Control+Enter"), number, chance.uniform(0.3, 0.6)))
    return presses.compared(f"batch_{FILES}", {"gallery": times[presses.WARM_UP :]})[0]


def _opened(ground: Ground, db: Database, address: str):
    return presses.opened(ground.browser, {"gallery": address}, "gallery", db.paths.project)


def _at_the_list(page: "Page") -> None:
    box = page.locator(".scroller").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

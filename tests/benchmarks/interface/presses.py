"""Pages side by side, presses on them in turns, and the times of these presses."""

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from harness.browser import sign_in_context

from annotator.benchmark.scratch import print_progress
from annotator.errors import AnnotatorError
from benchmarks.interface.probe import PROBE_SCRIPT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Press = Callable[["Page", int], None]

BENCH_ANNOTATOR = "Bench"
CLASS_KEYS = "1234567890qwertyuiop"  # of the first twenty classes, on all pages
OUR_PAGES = ("annotate", "grid", "review", "gallery")
PICTURE_FIRST = "floor_picture_first"
FIRST_PICTURE_SELECTORS = {"grid": ".tile img", "gallery": ".thumb img"}
TURN_ROUNDS = 6
WARM_UP = 3  # presses at the start of a row that are not counted
# seconds between a painted image and the next press: no beat that could fall in step with frames
PAUSE_SECONDS = (0.06, 0.14)
REPEAT_PAUSE_SECONDS = (0.36, 0.44)  # of the same key again: sooner, the pages take it for one that was pressed twice
FRAME_MILLISECONDS = 1000 / 60


@contextmanager
def open_pages(
    browser: "Browser", addresses: dict[str, str], watch: str, project: Path, name: str = BENCH_ANNOTATOR
) -> Iterator[dict[str, "Page"]]:
    """Open the pages side by side, and yield them once each shows `watch`: "picture", "grid", "gallery" or "heat".

    Each page has a browser context, and so a cache, of its own.

    Args:
        browser: The browser of Playwright.
        addresses: Name of a page -> its address.
        watch: What must be seen on a page.
        project: The project whose pages are among them.
        name: The name of the annotator.
    """
    with ExitStack() as stack:
        pages = {}
        for key, address in addresses.items():
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            stack.callback(context.close)
            context.add_init_script(PROBE_SCRIPT)
            sign_in_context(context, project, address, name)
            pages[key] = context.new_page()
            pages[key].goto(address)
            pages[key].locator(FIRST_PICTURE_SELECTORS.get(watch, ".stage img[data-image]")).first.wait_for(
                timeout=60_000
            )
            pages[key].evaluate("what => { benchmark.watch = what; }", watch)
            pages[key].evaluate("benchmark.ready()")
        yield pages


@contextmanager
def open_signed_in_page(browser: "Browser", address: str, project: Path) -> Iterator["Page"]:
    """Yield a page at this address, without waiting for anything on it."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        sign_in_context(context, project, address, BENCH_ANNOTATOR)
        page = context.new_page()
        page.goto(address)
        yield page
    finally:
        context.close()


def press_in_turns(
    pages: dict[str, "Page"],
    press: Press,
    count: int,
    *,
    pause: tuple[float, float] = PAUSE_SECONDS,
    seed: int = 0,
    before_turn: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Return the milliseconds of `count` presses on each page; the pages take turns.

    Args:
        pages: Name -> page.
        press: Presses a key on a page.
        count: The number of presses on each page.
        pause: The shortest and the longest pause between two presses.
        seed: The seed of the pauses.
        before_turn: Called before each page's turn: annotators who work at once wait for each other in it.
    """
    times: dict[str, list[float]] = {name: [] for name in pages}
    chance = random.Random(seed)
    numbers = {name: itertools.count() for name in pages}  # of all turns: the same key twice at once is no second press
    shares = [count // TURN_ROUNDS + (number < count % TURN_ROUNDS) for number in range(TURN_ROUNDS)]
    for turn, share in enumerate(shares):
        # The order alternates.
        for name in sorted(pages, reverse=bool(turn % 2)):
            before_turn()
            page = pages[name]
            page.bring_to_front()
            for _ in range(WARM_UP if turn == 0 else 0):
                time_press(page, press, next(numbers[name]), chance.uniform(*pause))
            for _ in range(share):
                times[name].append(time_press(page, press, next(numbers[name]), chance.uniform(*pause)))
    return times


def time_press(page: "Page", press: Press, number: int, pause: float) -> float:
    """Return the milliseconds from a press, after a pause in seconds, to the frame that shows its effect."""
    before = page.evaluate("benchmark.ready()")
    page.wait_for_timeout(1000 * pause)
    press(page, number)
    return page.evaluate("number => benchmark.painted(number)", before)


def press_class_key(page: "Page", number: int) -> None:
    """Press the key of a class; `number` counts the presses on the page, so that the classes take turns."""
    page.keyboard.press(CLASS_KEYS[number % len(CLASS_KEYS)])


def click_class(page: "Page", number: int) -> None:
    """Click on the button of a class; `number` counts the clicks on the page, so that eight classes take turns."""
    # By position, and with the mouse there before it is pressed, as for a person.
    box = page.locator("button.class").nth(number % 8).bounding_box()
    if box is None:
        raise AnnotatorError("The buttons of the classes are not on the page.")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_timeout(30)
    page.mouse.down()
    page.mouse.up()


def build_key_press(name: str) -> Press:
    """Return a press of the same key each time."""
    return lambda page, number: page.keyboard.press(name)


def compare_times(row: str, times: Mapping[str, Sequence[float]], *, frames: bool = False) -> tuple[dict, dict]:
    """Return figures `<page>_<row>_<p50 or p95>_ms` and ratios of our page over each floor.

    Args:
        row: The name of the action that was timed.
        times: Name of a page -> milliseconds of its presses.
        frames: Whether to add the number of screen frames of 1/60 s that our page took.
    """
    figures: dict[str, float] = {}
    ratios: dict[str, float] = {}
    for name, percent in (("p50", 50), ("p95", 95)):
        percentiles = {page: float(np.percentile(values, percent)) for page, values in times.items()}
        figures |= {f"{page}_{row}_{name}_ms": round(value, 2) for page, value in percentiles.items()}
        ours = next(page for page in OUR_PAGES if page in percentiles)
        value = percentiles.pop(ours)
        if frames:
            figures[f"{ours}_{row}_{name}_frames"] = round(value / FRAME_MILLISECONDS, 2)
        ratios |= {f"{ours}_{row}_{name}_over_{page}": round(value / floor, 3) for page, floor in percentiles.items()}
    print_progress(
        f"{row}: " + ", ".join(f"{page} {np.percentile(values, 50):.1f} ms" for page, values in times.items())
    )
    return figures, ratios

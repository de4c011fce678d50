"""Presses that nobody meant: each key and button that decides, pressed twice as a double click is.

Each page is looked at for a while, then a key, or a button at its place, is pressed twice. What the store holds
afterwards must be about what was on screen at the first press: everything else was decided unseen. How far apart the
presses were is read from the time stamps of the page's events: a busy machine sleeps longer than it is told. Beside it,
what must be kept: keys at five a second.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from harness import projects
from harness.child_processes import serve_page, wait_for

from annotator.benchmark.scratch import print_progress
from annotator.errors import AnnotatorError
from annotator.quality import audit_sampling
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from benchmarks.interface import bursts, presses
from benchmarks.interface.ground import Ground

if TYPE_CHECKING:
    from playwright.sync_api import Page

DOUBLE_PRESSES = 1000  # when a row has 60 presses
DOUBLE_PRESS_SECONDS = (0.080, 0.250)  # between the two presses
MANY_PRESS_SECONDS = (0.080, 0.640)  # where each gives many answers
LOOK_SECONDS = (0.45, 0.9)  # for which somebody looks at what is new
MANY_LOOK_SECONDS = (0.75, 1.2)
MAX_DOUBLE_MILLISECONDS = 280  # of presses that are a double press; later ones may be meant
MAX_MANY_MILLISECONDS = 680
SETTLE_SECONDS = 0.35  # after the second press, in which it would act
PROJECT_CLASSES = 20
TILES_PER_GRID = 24
CELLS_IN_HAND = 8 * TILES_PER_GRID  # cells of a class that a page of grids holds beyond those that are decided
BEAT_SECONDS = 0.2
BEAT_JITTER = 0.1  # of it, either way: nobody is a clock
STREAM_KEYS = 60  # keys

# What is on screen: images, and the class of the selected suggestion or of the grid.
SHOWN_SCRIPT = """() => {
  const within = (node) => [...node.querySelectorAll("*")].map((one) => one.shadowRoot).filter(Boolean);
  const find = (node) => node.querySelector(".root") ?? within(node).map(find).find(Boolean);
  const root = find(document);
  const seen = [...(root?.querySelectorAll(".stage img[data-image], .tiles:not(.skeleton) .tile[data-image]") ?? [])]
    .filter((one) => one.checkVisibility());
  const task = root?.querySelector(".tally")?.checkVisibility() ? root.querySelector(".tally").textContent : "";
  const chip = root?.querySelector(".suggestion.selected")?.dataset.class;
  return { images: seen.map((one) => Number(one.dataset.image)), chip: chip ? Number(chip) : null, task };
}"""


# When the page was pressed, in milliseconds: repeated keys of one that is held are no presses.
PRESS_TIMES_SCRIPT = """() => {
  window.pressTimes = [];
  const note = (event) => event.isTrusted && !event.repeat && window.pressTimes.push(event.timeStamp);
  for (const name of ["keydown", "pointerdown"]) addEventListener(name, note, true);
}"""


@dataclass
class Doubles:
    """The outcome of presses that were made twice, with the milliseconds between the two as the page had them."""

    pressed: int = 0
    pause_milliseconds: list[float] = field(default_factory=list)
    decided: int = 0  # of which the first press decided something
    unseen: list[str] = field(default_factory=list)  # decisions about what came only after the first press


@dataclass(frozen=True)
class Way:
    """A key, or a button by its selector, that decides on a page."""

    key: str = ""
    button: str = ""
    chip: bool = False  # answers the selected suggestion alone
    many: bool = False  # gives many answers

    def build_press(self, page: "Page") -> Callable[[], None] | None:
        """Return a function that presses the key or the button; None where the button is not on screen.

        The mouse is moved to the button already.
        """
        if self.key:
            return lambda: page.keyboard.press(self.key)
        button = page.locator(self.button).locator("visible=true").first
        box = button.bounding_box() if button.count() and button.is_enabled() else None
        if box is None:
            return None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

        def click() -> None:
            page.mouse.down()
            page.mouse.up()

        return click


ENTER_KEY = Way(key="Enter", many=True)
NOTHING_ELSE_BUTTON = Way(button="button[aria-keyshortcuts='Enter']", many=True)
SAVE_BUTTON = Way(button="button.decide", many=True)
PAGE_WAYS: dict[str, list[Way]] = {
    "annotate": [Way(key="1"), Way(key="2"), ENTER_KEY, Way(key=" "), Way(button="button.class"), NOTHING_ELSE_BUTTON],
    "grid": [ENTER_KEY, SAVE_BUTTON],
    "grid?audit=1": [ENTER_KEY, SAVE_BUTTON],
    "review": [
        *(Way(key=key, chip=True) for key in "ynu"),
        *(Way(button=f".answers.first button.{kind}", chip=True) for kind in ("yes", "no")),
        Way(button=".suggestion.selected button.no", chip=True),
        Way(key="a"),
        ENTER_KEY,
        NOTHING_ELSE_BUTTON,
    ],
    "autopilot": [ENTER_KEY, Way(key="1"), NOTHING_ELSE_BUTTON, Way(button="button.class")],
    "speed_test": [ENTER_KEY, Way(key="1"), NOTHING_ELSE_BUTTON, Way(button="button.class")],
}


def measure_repeats(ground: Ground) -> tuple[dict, dict]:
    """Press twice a thousand times on all pages, as far apart as double clicks are; and press keys at five a second.

    Return the figures, and no ratios.
    """
    count = round(DOUBLE_PRESSES * ground.keys / 60)
    of_all = Doubles()
    figures: dict[str, float] = {}
    chance = random.Random(0)
    for number, (path, ways) in enumerate(PAGE_WAYS.items()):
        some = count * (number + 1) // len(PAGE_WAYS) - count * number // len(PAGE_WAYS)
        with _open_page(ground, path, some) as (page, db):
            doubles = _press_twice(page, db, ways, some, chance)
        print_progress(f"{path}: {doubles.pressed} double presses, {doubles.decided} decided, unseen: {doubles.unseen}")
        of_all.pressed += doubles.pressed
        of_all.pause_milliseconds += doubles.pause_milliseconds
        of_all.decided += doubles.decided
        of_all.unseen += doubles.unseen
    figures |= {"double_presses": of_all.pressed, "double_presses_decided": of_all.decided}
    for name, percent in (("p50", 50), ("max", 100)):
        figures[f"double_press_pause_{name}_ms"] = round(float(np.percentile(of_all.pause_milliseconds, percent)), 1)
    return figures | {"double_presses_decided_unseen": len(of_all.unseen)} | _measure_five_a_second(ground, chance), {}


@contextmanager
def _open_page(ground: Ground, path: str, some: int) -> Iterator[tuple["Page", Database]]:
    """Yield a page of a new project with enough work for `some` presses and no answers, and its database."""
    gridded = "grid" in path or path == "autopilot"
    images = some * (TILES_PER_GRID if gridded else 1) + projects.IMAGES_IN_HAND + CELLS_IN_HAND
    if "audit" in path:
        images = projects.IMAGES_IN_HAND + (some * TILES_PER_GRID + CELLS_IN_HAND) // PROJECT_CLASSES
    db = projects.make_project(
        ground.make_folder(path.partition("?")[0] + str("audit" in path)), images, PROJECT_CLASSES
    )
    if path in ("review", "autopilot", "grid"):
        chances = np.random.default_rng(0).uniform(0.02, 0.3, (images, PROJECT_CLASSES))
        chances[:, :3] = np.random.default_rng(1).uniform(0.55, 0.99, (images, 3))
        run = projects.publish_run(db, chances)
        if path == "review":
            projects.draw_heatmaps(db, run, chances > 0.5)
    if path in ("autopilot", "grid?audit=1"):
        audit_sampling.draw_audit(
            db, (some + CELLS_IN_HAND // TILES_PER_GRID) * TILES_PER_GRID if "audit" in path else images * 2, seed=0
        )
    with serve_page(db) as server:
        watched = "grid" if "grid" in path else "picture"
        address = f"{server.address}/{path}"
        if path in ("autopilot", "speed_test"):  # either kind may come first
            with presses.open_signed_in_page(ground.browser, address, db.paths.project) as page:
                yield page, db
            return
        with presses.open_pages(ground.browser, {path: address}, watched, db.paths.project) as pages:
            yield pages[path], db


def _press_twice(page: "Page", db: Database, ways: list[Way], count: int, chance: random.Random) -> Doubles:
    done = Doubles()
    tested = "speed_test" in page.url
    page.add_init_script(f"({PRESS_TIMES_SCRIPT})()")  # before the page's own listeners, which end some events
    page.reload()
    while done.pressed < count:
        way = ways[chance.randrange(len(ways))]
        if tested and not page.evaluate(SHOWN_SCRIPT)["task"]:
            page.locator("button.main, button[aria-keyshortcuts='Enter']").locator("visible=true").first.click()
        wait_for(lambda: page.evaluate(SHOWN_SCRIPT)["images"], "an item on screen", 60)
        time.sleep(chance.uniform(*(MANY_LOOK_SECONDS if way.many else LOOK_SECONDS)))
        before, newest, press = page.evaluate(SHOWN_SCRIPT), decisions.get_newest_decision_id(db), way.build_press(page)
        if press is None or not before["images"]:
            continue
        began = time.perf_counter()
        press()
        pause = chance.uniform(*(MANY_PRESS_SECONDS if way.many else DOUBLE_PRESS_SECONDS))
        time.sleep(max(0.0, began + pause - time.perf_counter()))
        press()
        time.sleep(SETTLE_SECONDS)
        first, second = page.evaluate("window.pressTimes.slice(-2)")
        if second - first > (MAX_MANY_MILLISECONDS if way.many else MAX_DOUBLE_MILLISECONDS):
            if not tested:
                bursts.wait_until_nothing_waits(page)
            continue  # the machine was busy: these are two presses, each of which may be meant
        done.pressed += 1
        done.pause_milliseconds.append(second - first)
        if tested:
            after = page.evaluate(SHOWN_SCRIPT)["task"]
            steps = int(after.split()[0]) - int(before["task"].split()[0]) if after else 1
            done.decided += steps > 0
            done.unseen += [f"{way}: {before['task']} -> {after}"] * (steps > 1)
            continue
        bursts.wait_until_nothing_waits(page)
        rows = db.rows("SELECT * FROM decision WHERE annotator = ? AND id > ?", [presses.BENCH_ANNOTATOR, newest])
        done.decided += bool(rows)
        done.unseen += _describe_unseen(way, before, rows)
    return done


def _describe_unseen(way: Way, before: dict, rows: list[dict]) -> list[str]:
    """Return a text for each decision about an image or a chip that was not on screen at the first press."""
    unseen = {
        row["batch"] or row["uuid"]: f"{way}: {row['action']} {row['image_id']} {row['class_id']}, not {before}"
        for row in rows
        if row["image_id"] not in before["images"] or (way.chip and row["class_id"] != before["chip"])
    }
    return list(unseen.values())


def _measure_five_a_second(ground: Ground, chance: random.Random) -> dict[str, float]:
    """Press five keys a second, all of which must be kept: different ones, pairs of equal ones, and one key only.

    Return the numbers of keys pressed and kept.
    """
    different = [presses.CLASS_KEYS[number % PROJECT_CLASSES] for number in range(STREAM_KEYS)]
    pairs = [*presses.CLASS_KEYS[:4], *(presses.CLASS_KEYS[4 + number // 2 % 16] for number in range(STREAM_KEYS - 4))]
    figures: dict[str, float] = {}
    db = projects.make_project(ground.make_folder("five"), 3 * STREAM_KEYS + projects.IMAGES_IN_HAND, PROJECT_CLASSES)
    with (
        serve_page(db) as server,
        presses.open_pages(
            ground.browser, {"annotate": f"{server.address}/annotate"}, "picture", db.paths.project
        ) as pages,
    ):
        for name, keys in (("different", different), ("pairs", pairs), ("one_key", ["1"] * STREAM_KEYS)):
            beats = [BEAT_SECONDS * (1 + chance.uniform(-BEAT_JITTER, BEAT_JITTER)) for _ in keys]
            burst = bursts.press_class_keys(pages["annotate"], db, keys, beats)
            figures |= {
                f"five_a_second_{name}_keys": STREAM_KEYS,
                f"five_a_second_{name}_kept": burst.right_image_count,
            }
            if burst.doubled_count or len(burst.decided) != burst.right_image_count:
                raise AnnotatorError(f"Keys at five a second were stored on a wrong image or twice: {burst}")
    return figures

"""Presses that nobody meant: each key and button that decides, pressed twice within a quarter of a second.

Each page is looked at for a while, then a key, or a button at its place, is pressed twice. What the store holds
afterwards must be about what was on screen at the first press: everything else was decided unseen. Beside it, what must
be kept: keys at five a second.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from annotator.benchmark.harness import projects
from annotator.benchmark.harness.processes import say, serve_page, wait_for
from annotator.benchmark.interface import bursts, presses
from annotator.benchmark.interface.ground import Ground
from annotator.errors import AnnotatorError
from annotator.quality import audit
from annotator.store.database.database import Database
from annotator.store.labels import decisions

if TYPE_CHECKING:
    from playwright.sync_api import Page

DOUBLES = 1000  # when a row has 60 presses
APART = (0.080, 0.250)  # seconds between the two presses
LOOK = (0.45, 0.9)  # seconds for which somebody looks at what is new
AFTERWARDS = 0.35  # seconds after the second press, in which it would act
CLASSES = 20
TILES = 24
IN_HAND = 8 * TILES  # cells of a class that a page of grids holds beyond those that are decided
FIVE_A_SECOND = 0.2  # seconds
JITTER = 0.1  # of it, either way: nobody is a clock
STREAM = 60  # keys

# What is on screen: images, and the class of the selected suggestion or of the grid.
SHOWN = """() => {
  const within = (node) => [...node.querySelectorAll("*")].map((one) => one.shadowRoot).filter(Boolean);
  const find = (node) => node.querySelector(".root") ?? within(node).map(find).find(Boolean);
  const root = find(document);
  const seen = [...(root?.querySelectorAll(".stage img[data-image], .tiles:not(.skeleton) .tile[data-image]") ?? [])]
    .filter((one) => one.checkVisibility());
  const task = root?.querySelector(".tally")?.checkVisibility() ? root.querySelector(".tally").textContent : "";
  const chip = root?.querySelector(".suggestion.selected")?.dataset.class;
  return { images: seen.map((one) => Number(one.dataset.image)), chip: chip ? Number(chip) : null, task };
}"""


@dataclass
class Doubles:
    """The outcome of presses that were made twice."""

    pressed: int = 0
    decided: int = 0  # of which the first press decided something
    unseen: list[str] = field(default_factory=list)  # decisions about what came only after the first press


@dataclass(frozen=True)
class Way:
    """A key, or a button by its selector, that decides on a page."""

    key: str = ""
    button: str = ""
    chip: bool = False  # answers the selected suggestion alone

    def presser(self, page: "Page") -> Callable[[], None] | None:
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


ENTER = Way(key="Enter")
NOTHING_ELSE = Way(button="button[aria-keyshortcuts='Enter']")
PAGES: dict[str, list[Way]] = {
    "annotate": [Way(key="1"), Way(key="2"), ENTER, Way(key=" "), Way(button="button.class"), NOTHING_ELSE],
    "grid": [ENTER, Way(button="button.decide")],
    "grid?audit=1": [ENTER, Way(button="button.decide")],
    "review": [
        *(Way(key=key, chip=True) for key in "ynu"),
        *(Way(button=f".answers.first button.{kind}", chip=True) for kind in ("yes", "no")),
        Way(button=".suggestion.selected button.no", chip=True),
        Way(key="a"),
        ENTER,
        NOTHING_ELSE,
    ],
    "autopilot": [ENTER, Way(key="1"), NOTHING_ELSE, Way(button="button.class")],
    "speed_test": [ENTER, Way(key="1"), NOTHING_ELSE, Way(button="button.class")],
}


def repeats(ground: Ground) -> tuple[dict, dict]:
    """Press twice a thousand times, 80 to 250 ms apart, on all pages; and press keys at five a second.

    Return the figures, and no ratios.
    """
    count = round(DOUBLES * ground.keys / 60)
    of_all = Doubles()
    figures: dict[str, float] = {}
    chance = random.Random(0)
    for number, (path, ways) in enumerate(PAGES.items()):
        some = count * (number + 1) // len(PAGES) - count * number // len(PAGES)
        with _page(ground, path, some) as (page, db):
            doubles = _doubles(page, db, ways, some, chance)
        say(f"{path}: {doubles.pressed} double presses, {doubles.decided} decided, unseen: {doubles.unseen}")
        of_all.pressed += doubles.pressed
        of_all.decided += doubles.decided
        of_all.unseen += doubles.unseen
    figures |= {"double_presses": of_all.pressed, "double_presses_decided": of_all.decided}
    return figures | {"double_presses_decided_unseen": len(of_all.unseen)} | _five_a_second(ground, chance), {}


@contextmanager
def _page(ground: Ground, path: str, some: int) -> Iterator[tuple["Page", Database]]:
    """Yield a page of a new project with enough work for `some` presses and no answers, and its database."""
    gridded = "grid" in path or path == "autopilot"
    images = some * (TILES if gridded else 1) + projects.IN_HAND + IN_HAND
    if "audit" in path:
        images = projects.IN_HAND + (some * TILES + IN_HAND) // CLASSES
    db = projects.make_project(ground.room(path.partition("?")[0] + str("audit" in path)), images, CLASSES)
    if path in ("review", "autopilot", "grid"):
        chances = np.random.default_rng(0).uniform(0.02, 0.3, (images, CLASSES))
        chances[:, :3] = np.random.default_rng(1).uniform(0.55, 0.99, (images, 3))
        run = projects.publish_run(db, chances)
        if path == "review":
            projects.draw_heatmaps(db, run, chances > 0.5)
    if path in ("autopilot", "grid?audit=1"):
        audit.draw(db, (some + IN_HAND // TILES) * TILES if "audit" in path else images * 2, seed=0)
    with serve_page(db) as server:
        watched = "grid" if "grid" in path else "picture"
        address = f"{server.address}/{path}"
        if path in ("autopilot", "speed_test"):  # either kind may come first
            with presses.let_in_page(ground.browser, address, db.paths.project) as page:
                yield page, db
            return
        with presses.opened(ground.browser, {path: address}, watched, db.paths.project) as pages:
            yield pages[path], db


def _doubles(page: "Page", db: Database, ways: list[Way], count: int, chance: random.Random) -> Doubles:
    done = Doubles()
    tested = "speed_test" in page.url
    while done.pressed < count:
        way = ways[chance.randrange(len(ways))]
        if tested and not page.evaluate(SHOWN)["task"]:
            page.locator("button.main, button[aria-keyshortcuts='Enter']").locator("visible=true").first.click()
        wait_for(lambda: page.evaluate(SHOWN)["images"], "an item on screen", 60)
        time.sleep(chance.uniform(*LOOK))
        before, newest, press = page.evaluate(SHOWN), decisions.newest_decision(db), way.presser(page)
        if press is None or not before["images"]:
            continue
        began = time.perf_counter()
        press()
        time.sleep(max(0.0, began + chance.uniform(*APART) - time.perf_counter()))
        press()
        time.sleep(AFTERWARDS)
        done.pressed += 1
        if tested:
            after = page.evaluate(SHOWN)["task"]
            steps = int(after.split()[0]) - int(before["task"].split()[0]) if after else 1
            done.decided += steps > 0
            done.unseen += [f"{way}: {before['task']} -> {after}"] * (steps > 1)
            continue
        bursts.wait_until_nothing_waits(page)
        rows = db.rows("SELECT * FROM decision WHERE annotator = ? AND id > ?", [presses.NAME, newest])
        done.decided += bool(rows)
        done.unseen += _unseen(way, before, rows)
    return done


def _unseen(way: Way, before: dict, rows: list[dict]) -> list[str]:
    """Return a text for each decision about an image or a chip that was not on screen at the first press."""
    unseen = {
        row["batch"] or row["uuid"]: f"{way}: {row['action']} {row['image_id']} {row['class_id']}, not {before}"
        for row in rows
        if row["image_id"] not in before["images"] or (way.chip and row["class_id"] != before["chip"])
    }
    return list(unseen.values())


def _five_a_second(ground: Ground, chance: random.Random) -> dict[str, float]:
    """Press five keys a second, all of which must be kept: different ones, pairs of equal ones, and one key only.

    Return the numbers of keys pressed and kept.
    """
    different = [presses.KEYS[number % CLASSES] for number in range(STREAM)]
    pairs = [*presses.KEYS[:4], *(presses.KEYS[4 + number // 2 % 16] for number in range(STREAM - 4))]
    figures: dict[str, float] = {}
    db = projects.make_project(ground.room("five"), 3 * STREAM + projects.IN_HAND, CLASSES)
    with (
        serve_page(db) as server,
        presses.opened(
            ground.browser, {"annotate": f"{server.address}/annotate"}, "picture", db.paths.project
        ) as pages,
    ):
        for name, keys in (("different", different), ("pairs", pairs), ("one_key", ["1"] * STREAM)):
            beats = [FIVE_A_SECOND * (1 + chance.uniform(-JITTER, JITTER)) for _ in keys]
            burst = bursts.on_annotate(pages["annotate"], db, keys, beats)
            figures |= {f"five_a_second_{name}_keys": STREAM, f"five_a_second_{name}_kept": burst.on_the_right_image}
            if burst.doubled or len(burst.decided) != burst.on_the_right_image:
                raise AnnotatorError(f"Keys at five a second were stored on a wrong image or twice: {burst}")
    return figures

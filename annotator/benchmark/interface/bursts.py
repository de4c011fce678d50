"""Keys that are pressed faster than anybody looks, on each of the pages, and what the store holds of them."""

import statistics
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from annotator.benchmark.harness.processes import say, wait_for
from annotator.benchmark.interface.presses import KEYS, NAME
from annotator.errors import AnnotatorError
from annotator.store import classes, decisions
from annotator.store.database import Database

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAUSE = 0.020  # seconds between two keys
RECENT = 10_000  # decisions looked back at, more than a burst can make
STATES = {"y": 1, "n": -1}


@dataclass(frozen=True)
class Burst:
    """What became of the keys: presses and decisions as the same kind of tuple, such as (image on screen, key)."""

    pressed: list[Hashable]  # in the order of the presses
    decided: list[Hashable]  # in the order of the store
    apart: list[float]  # milliseconds between two presses, as the page saw them

    @property
    def on_the_right_image(self) -> int:
        """Decisions that a press stands behind: that image on screen, that key."""
        return sum((Counter(self.decided) & Counter(self.pressed)).values())

    @property
    def doubled(self) -> int:
        """Decisions beyond the presses that stand behind them."""
        return sum(max(0, count - self.pressed.count(one)) for one, count in Counter(self.decided).items() if count > 1)

    @property
    def lost(self) -> int:
        """Presses without a decision; one that came while there was no picture is about nothing, and lost as well."""
        return len(self.pressed) - self.on_the_right_image

    def figures(self, name: str) -> dict[str, float]:
        """As numbers, each beginning with this name."""
        return {
            f"{name}_keys": len(self.pressed),
            f"{name}_between_keys_p50_ms": round(statistics.median(self.apart), 1),
            f"{name}_decisions": len(self.decided),
            f"{name}_on_the_right_image": self.on_the_right_image,
            f"{name}_lost": self.lost,
            f"{name}_doubled": self.doubled,
        }


def on_annotate(page: "Page", db: Database, count: int) -> Burst:
    """Keys of the first twenty classes, in turn."""
    presses, rows = _burst(page, db, [KEYS[number % len(KEYS)] for number in range(count)])
    key_of = {one.id: key for one, key in zip(classes.all_classes(db), KEYS, strict=False)}
    decided = [(row["image_id"], key_of[row["class_id"]]) for row in rows]
    return Burst([(_number(one["before"]), one["key"]) for one in presses], decided, _apart(presses))


def on_grid(page: "Page", db: Database, count: int) -> Burst:
    """Enter, again and again: a decision is a whole grid, known by its images."""
    presses, rows = _burst(page, db, ["Enter"] * count)
    grids: dict[str, list[int]] = {}
    for row in rows:
        grids.setdefault(row["batch"], []).append(row["image_id"])
    decided = [tuple(sorted(found)) for found in grids.values()]
    pressed = [tuple(sorted(map(int, (one["before"] or "").split()))) for one in presses]
    return Burst(pressed, decided, _apart(presses))


def on_review(page: "Page", db: Database, count: int) -> Burst:
    """Accept and reject in turn: a decision is about the suggestion that was chosen, on the image on screen."""
    presses, rows = _burst(page, db, ["yn"[number % 2] for number in range(count)])
    decided = [(row["image_id"], row["class_id"], row["state"]) for row in rows]
    pressed = [(_number(one["before"]), _number(one["suggested"]), STATES[one["key"]]) for one in presses]
    return Burst(pressed, decided, _apart(presses))


def _burst(page: "Page", db: Database, keys: Sequence[str]) -> tuple[list[dict], list[dict]]:
    """The presses as the page saw them, and the decisions that came of them."""
    page.bring_to_front()
    first = page.evaluate("benchmark.ready()")
    page.wait_for_timeout(2000)  # a person's pause: all that is fetched ahead is there
    # What was pressed earlier must have been saved by now, or it would be counted as the burst's.
    _wait_until_nothing_waits(page)
    before = {row["uuid"] for row in decisions.recent(db, NAME, RECENT)}
    _press_at_a_beat(page, keys)
    _wait_until_nothing_waits(page)
    time.sleep(1.0)  # time for a decision too many to come, if there is one
    presses = page.evaluate("first => benchmark.presses.slice(first)", first)
    found = [row for row in decisions.recent(db, NAME, RECENT) if row["uuid"] not in before]
    say(f"{len(keys)} keys in a burst: {len(found)} decisions")
    return presses, found


def _wait_until_nothing_waits(page: "Page") -> None:
    waiting = page.locator(".foot[data-waiting]")
    try:
        wait_for(lambda: waiting.get_attribute("data-waiting") == "0", "nothing to wait", 60.0)
    except AnnotatorError as error:
        raise AnnotatorError("The page has not been able to save its decisions for a minute.") from error


def _press_at_a_beat(page: "Page", keys: Sequence[str]) -> None:
    started = time.perf_counter()
    for number, one in enumerate(keys):
        time.sleep(max(0.0, started + number * PAUSE - time.perf_counter()))
        page.keyboard.press(one)


def _apart(presses: Sequence[dict]) -> list[float]:
    return [after["at"] - earlier["at"] for earlier, after in pairwise(presses)]


def _number(text: str | None) -> int | None:
    return int(text) if text else None

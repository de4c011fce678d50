"""Keys pressed faster than anybody can look, on each of the pages, compared with the decisions in the store."""

import statistics
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.child_processes import wait_for

from annotator.benchmark.scratch import print_progress
from annotator.errors import AnnotatorError
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from benchmarks.interface.presses import BENCH_ANNOTATOR, CLASS_KEYS

if TYPE_CHECKING:
    from playwright.sync_api import Page

KEY_PAUSE_SECONDS = 0.020  # between two keys
RECENT_DECISIONS = 10_000  # decisions looked back at, more than a burst can make
KEY_STATES = {"y": 1, "n": -1}


@dataclass(frozen=True)
class Burst:
    """The presses of a burst and the decisions stored for them, as tuples of the same form, such as (image, key)."""

    pressed: Sequence[Hashable]  # in the order of the presses
    decided: Sequence[Hashable]  # in the order of the store
    pause_milliseconds: list[float]  # milliseconds between two presses, as the page saw them

    @property
    def right_image_count(self) -> int:
        """The number of decisions with a press of that key on that image."""
        return sum((Counter(self.decided) & Counter(self.pressed)).values())

    @property
    def doubled_count(self) -> int:
        """The number of decisions stored more often than they were pressed."""
        stored = Counter(self.decided)
        return sum(max(0, count - self.pressed.count(entry)) for entry, count in stored.items() if count > 1)

    @property
    def lost_count(self) -> int:
        """The number of presses without a decision; a press while the page had no picture counts as lost."""
        return len(self.pressed) - self.right_image_count

    def build_figures(self, name: str) -> dict[str, float]:
        """Return name -> number; each name begins with `name`."""
        return {
            f"{name}_keys": len(self.pressed),
            f"{name}_between_keys_p50_ms": round(statistics.median(self.pause_milliseconds), 1),
            f"{name}_decisions": len(self.decided),
            f"{name}_on_the_right_image": self.right_image_count,
            f"{name}_lost": self.lost_count,
            f"{name}_doubled": self.doubled_count,
        }


def press_class_keys(page: "Page", db: Database, keys: Sequence[str], pauses: Sequence[float] = ()) -> Burst:
    """Press keys of classes, each so many seconds after the one before."""
    presses, rows = _press_burst(page, db, keys, pauses)
    key_of = {class_.id: key for class_, key in zip(classes.load_active_classes(db), CLASS_KEYS, strict=False)}
    decided = [(row["image_id"], key_of[row["class_id"]]) for row in rows]
    return Burst(
        [(_parse_number(press["before"]), press["key"]) for press in presses], decided, _compute_pauses(presses)
    )


def press_enter(page: "Page", db: Database, count: int) -> Burst:
    """Press Enter again and again; a decision is a whole grid, identified by its images."""
    presses, rows = _press_burst(page, db, ["Enter"] * count)
    grids: dict[str, list[int]] = {}
    for row in rows:
        grids.setdefault(row["batch"], []).append(row["image_id"])
    decided = [tuple(sorted(image_ids)) for image_ids in grids.values()]
    pressed = [tuple(sorted(map(int, (press["before"] or "").split()))) for press in presses]
    return Burst(pressed, decided, _compute_pauses(presses))


def press_answers(page: "Page", db: Database, count: int) -> Burst:
    """Accept and reject in turn; a decision is about the selected suggestion of the image on screen."""
    presses, rows = _press_burst(page, db, ["yn"[number % 2] for number in range(count)])
    decided = [(row["image_id"], row["class_id"], row["state"]) for row in rows]
    pressed = [
        (_parse_number(press["before"]), _parse_number(press["suggested"]), KEY_STATES[press["key"]])
        for press in presses
    ]
    return Burst(pressed, decided, _compute_pauses(presses))


def _press_burst(
    page: "Page", db: Database, keys: Sequence[str], pauses: Sequence[float] = ()
) -> tuple[list[dict], list[dict]]:
    """Return the presses as the page saw them, and the decisions stored for them."""
    page.bring_to_front()
    first = page.evaluate("benchmark.ready()")
    page.wait_for_timeout(2000)  # a person's pause, in which the page fetches ahead
    # Earlier presses must have been saved, or they would count as the burst's.
    wait_until_nothing_waits(page)
    before = {row["uuid"] for row in decisions.load_recent(db, BENCH_ANNOTATOR, RECENT_DECISIONS)}
    _press_at_a_beat(page, keys, pauses or [KEY_PAUSE_SECONDS] * len(keys))
    wait_until_nothing_waits(page)
    time.sleep(1.0)  # in which a doubled decision would arrive
    presses = page.evaluate("first => benchmark.presses.slice(first)", first)
    rows = [row for row in decisions.load_recent(db, BENCH_ANNOTATOR, RECENT_DECISIONS) if row["uuid"] not in before]
    print_progress(f"{len(keys)} keys in a burst: {len(rows)} decisions")
    return presses, rows


def wait_until_nothing_waits(page: "Page") -> None:
    """Wait until all decisions of the page are saved. Raises AnnotatorError after a minute."""
    waiting = page.locator(".foot[data-waiting]")
    try:
        wait_for(lambda: waiting.get_attribute("data-waiting") == "0", "the page to save its decisions", 60.0)
    except AnnotatorError as error:
        raise AnnotatorError("The page has not been able to save its decisions for a minute.") from error


def _press_at_a_beat(page: "Page", keys: Sequence[str], pauses: Sequence[float]) -> None:
    due = time.perf_counter()
    for key, pause in zip(keys, pauses, strict=True):
        time.sleep(max(0.0, due - time.perf_counter()))
        page.keyboard.press(key)
        due += pause


def _compute_pauses(presses: Sequence[dict]) -> list[float]:
    return [after["at"] - earlier["at"] for earlier, after in pairwise(presses)]


def _parse_number(text: str | None) -> int | None:
    return int(text) if text else None

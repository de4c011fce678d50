"""A key or a click -> the next image painted, in a real Chromium, beside the least that any page could do.

Both pages take turns, round after round, in one browser; the same script in both takes the times: from the time stamp
of the trusted event to the end of the first frame that holds another picture, complete. Frames are 16.7 ms apart when
they follow each other; after a pause the first one may come at once.

The floor (floor.py) is a bare Starlette page; in the rows of a key without training a second one takes part, which
puts off all but the picture until it is drawn: a page can hardly be quicker. Ours is the Annotate page as `annotator
serve` serves it, on a project made here; the worker is a process of its own, which either is not there or, in the rows
called `training`, trains and draws heat maps without end (in the floor's turns too). The floor appends labels to a
file and waits for the disk.
"""

import random
import statistics
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from annotator.benchmark.browser import chromium
from annotator.benchmark.processes import python, say, server, wait_for
from annotator.errors import AnnotatorError
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE, FIRST_RUN_AT
from annotator.store import classes, decisions, images, jobs, runs
from annotator.store.arrays import add_features
from annotator.store.database import Database

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SAMPLE_IMAGES = Path(__file__).resolve().parents[2] / "sample_data" / "images"
PICTURE_FIRST = "floor_picture_first"
NAME = "Bench"
KEYS = "1234567890qwertyuiop"  # of the first twenty classes, on both pages
FEW, MANY = 20, 300  # classes
BURST, BURST_PAUSE = 60, 0.020  # keys, seconds between them
ROUNDS = 6
WARM_UP = 3  # presses at the start of a row that are not counted
IN_HAND = 200  # images beyond those that get a label: the page holds up to 64, and leaves half of the last ones alone
PAUSE = (0.06, 0.14)  # seconds between a painted image and the next press: no beat that could fall in step with frames

# Runs before any script of the page, so its listeners hear an event first.
PROBE = """(() => {
  let stage = null;
  const within = (root) => [...root.querySelectorAll("*")].map((node) => node.shadowRoot).filter(Boolean);
  const find = (root) => root.querySelector(".stage") ?? within(root).map(find).find(Boolean);
  const shown = () => {
    if (!stage?.isConnected) stage = find(document);
    const picture = stage?.querySelector("img[data-image]");
    return picture?.complete && picture.naturalWidth ? picture : null;
  };
  const presses = [];
  const press = (event) => {
    if (!event.isTrusted || event.repeat) return;
    const before = shown()?.dataset.image ?? null;
    const one = { at: event.timeStamp, key: event.key ?? "", image: before, milliseconds: null };
    presses.push(one);
    const look = () => requestAnimationFrame(() => {
      const picture = shown();
      if (!picture || picture.dataset.image === before) return look();
      const channel = new MessageChannel();
      // Posted in the frame's own callback, it arrives once that frame has been handed over to be drawn.
      channel.port1.onmessage = () => { one.milliseconds = performance.now() - one.at; };
      channel.port2.postMessage(0);
    });
    look();
  };
  addEventListener("keydown", press, true);
  addEventListener("click", press, true);
  const until = (done) => new Promise((resolve, reject) => {
    const from = performance.now();
    const look = () => {
      if (done()) resolve(done());
      else if (performance.now() - from > 15000) reject(new Error("no picture within 15 s"));
      else setTimeout(look, 4);
    };
    look();
  });
  window.benchmark = {
    presses,
    ready: () => until(shown).then(() => presses.length),
    painted: (number) => until(() => presses[number]?.milliseconds),
  };
})()"""


@dataclass(frozen=True)
class Burst:
    """What became of keys that were pressed faster than anybody looks."""

    pressed: list[tuple[int | None, str]]  # (image on screen, key), in the order of the presses
    decided: list[tuple[int, str]]  # (image, key of the class), in the order of the store
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
        """Presses without a decision."""
        return len(self.pressed) - self.on_the_right_image


def measure(*, keys: int = 60) -> dict:
    """Times of a key and of a click, in milliseconds, and a burst of keys, on the floor and on the Annotate page.

    keys       presses and clicks in each row on each page; the 95th percentile of 60 is the third largest
    returns    {"bench", "figures", "ratios"}: `<page>[_300_classes]_<key or click>[_training]_<p50 or p95>_ms`, the
               burst in decisions, and ratios of ours over the floors of the same row

    Raises AnnotatorError without a browser, without the sample images, or when a page stays without a picture.
    """
    figures: dict[str, float] = {}
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="annotator-bench-") as name, chromium() as browser:
        folder = Path(name)
        count = 4 * (keys + WARM_UP) + BURST + FIRST_RUN_AT + IN_HAND
        say(f"{count} images, {FEW} and {MANY} classes")
        _make_images(folder / "images", count)
        few, many = (_make_project(folder, number) for number in (FEW, MANY))
        with server("annotator.benchmark.floor", folder / "images", folder / "floor.jsonl") as floor:
            with _pages(browser, floor, few) as pages:
                _measure_rows(figures, ratios, pages, keys)
                burst = _burst(pages["annotate"], few)
                with _training(few) as trained:
                    _measure_rows(figures, ratios, pages, keys, condition="_training")
                    figures["runs_published_in_training_rows"] = trained()
            with _pages(browser, floor, many) as pages:
                _measure_rows(figures, ratios, pages, keys, size=f"_{MANY}_classes")
    figures |= {
        "burst_keys": len(burst.pressed),
        "burst_between_keys_p50_ms": round(statistics.median(burst.apart), 1),
        "burst_decisions": len(burst.decided),
        "burst_on_the_right_image": burst.on_the_right_image,
        "burst_lost": burst.lost,
        "burst_doubled": burst.doubled,
        "presses_per_row": keys,
    }
    return {"bench": "interface", "figures": figures, "ratios": ratios}


def _measure_rows(
    figures: dict[str, float],
    ratios: dict[str, float],
    pages: dict[str, "Page"],
    count: int,
    *,
    size: str = "",
    condition: str = "",
) -> None:
    for how in (_key, _click):
        row = f"{size}{how.__name__}{condition}"
        # The second floor takes part where a page's own work shows best; in every row it would only take time.
        ours_and_floors = {name: page for name, page in pages.items() if row.endswith("_key") or name != PICTURE_FIRST}
        times = _row(ours_and_floors, how, count)
        for name, percent in (("p50", 50), ("p95", 95)):
            found = {page: float(np.percentile(values, percent)) for page, values in times.items()}
            figures |= {f"{page}{row}_{name}_ms": round(value, 2) for page, value in found.items()}
            ours = found.pop("annotate")
            ratios |= {f"annotate{row}_{name}_over_{page}": round(ours / value, 3) for page, value in found.items()}
        say(f"{row[1:]}: " + ", ".join(f"{page} {np.percentile(one, 50):.1f} ms" for page, one in times.items()))


# -- what is measured on


def _make_images(folder: Path, count: int) -> None:
    """The sample images as often as needed, each with a pixel of its own, so that all contents differ."""
    samples = sorted(SAMPLE_IMAGES.glob("*.jpg"))
    if not samples:
        raise AnnotatorError(f"The sample images are not where they should be: {SAMPLE_IMAGES}. Install again.")
    folder.mkdir()
    for number in range(count):
        with Image.open(samples[number % len(samples)]) as sample:
            picture = sample.convert("RGB")
        picture.paste((number % 256, number // 256, 128), (0, 0, 8, 8))
        picture.save(folder / f"{number:05d}.jpg", quality=90)


def _make_project(folder: Path, class_count: int) -> Database:
    """A project with features (noise: a training on it takes as long as on any other) and enough labels to train on."""
    db = Database(folder / f"project-{class_count}", create=True)
    names = sorted(path.name for path in (folder / "images").iterdir())
    images.register(db, folder / "images", names)
    classes.add_classes(db, [(f"class {number + 1}", "") for number in range(class_count)])
    ids = [image.id for image in images.all_images(db)]
    noise = np.random.default_rng(0).normal(size=(len(ids), 1280)).astype(np.float16)
    regions = np.broadcast_to(noise[:, None], (len(ids), 9, 1280))  # none is missing, so that nothing is embedded
    add_features(db.paths.features(DEFAULT_BACKBONE), np.array(ids), noise, regions)
    known = [one.id for one in classes.all_classes(db)]
    given = [
        Decision(str(uuid.uuid4()), "label", "Somebody", "click", image_id, known[number % len(known)], 1)
        for number, image_id in enumerate(images.in_working_order(db)[-FIRST_RUN_AT:])
    ]
    decisions.decide(db, given)
    return db


@contextmanager
def _pages(browser: "Browser", floor: str, db: Database) -> Iterator[dict[str, "Page"]]:
    """The floors and the Annotate page of a project, open side by side, each with a picture."""
    with ExitStack() as stack:
        ours = stack.enter_context(server("annotator.benchmark.page_alone", db.paths.project))
        bare = f"{floor}/?classes={len(classes.all_classes(db))}"
        pages = {}
        for name, address in (("floor", bare), (PICTURE_FIRST, f"{bare}&first=picture"), ("annotate", ours)):
            # A context each: none finds in the cache what another has fetched.
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            stack.callback(context.close)
            context.add_init_script(PROBE)
            context.add_cookies([{"name": "annotator_name", "value": NAME, "url": address}])
            pages[name] = context.new_page()
            pages[name].goto(address)
            pages[name].locator(".stage img").wait_for(timeout=60_000)
        yield pages


@contextmanager
def _training(db: Database) -> Iterator[Callable[[], int]]:
    """A worker that is asked to train as soon as it has trained; gives how many runs it has published since."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.1):
            if not jobs.training_asked(db):
                jobs.ask_training(db)

    def newest() -> int:
        run = runs.current_run(db)
        return run.id if run else 0

    asking = threading.Thread(target=ask, daemon=True)
    with python("annotator", "worker", db.paths.project) as process:
        asking.start()
        try:
            # Not before it has loaded all it needs: by the third run it has drawn heat maps, too.
            wait_for(lambda: newest() >= 3 or process.poll() is not None, "the worker's third run", seconds=300)
            first = newest()
            yield lambda: newest() - first
        finally:
            over.set()
            asking.join()


# -- measuring


def _row(pages: dict[str, "Page"], how: Callable[["Page", int], None], count: int) -> dict[str, list[float]]:
    """Milliseconds of `count` presses on each page, the pages taking turns."""
    times: dict[str, list[float]] = {name: [] for name in pages}
    pause = random.Random(0)
    shares = [count // ROUNDS + (number < count % ROUNDS) for number in range(ROUNDS)]
    for turn, share in enumerate(shares):
        # Who goes first changes, too.
        for name in sorted(pages, reverse=bool(turn % 2)):
            page = pages[name]
            page.bring_to_front()
            extra = WARM_UP if turn == 0 else 0
            for number in range(share + extra):
                before = page.evaluate("benchmark.ready()")
                page.wait_for_timeout(1000 * pause.uniform(*PAUSE))
                how(page, before)
                taken = page.evaluate("number => benchmark.painted(number)", before)
                if number >= extra:
                    times[name].append(taken)
    return times


def _key(page: "Page", number: int) -> None:
    page.keyboard.press(KEYS[number % len(KEYS)])


def _click(page: "Page", number: int) -> None:
    # By its place on the screen, as a hand would; the mouse is there before it is pressed, as it is for a person.
    box = page.locator("button.class").nth(number % 8).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_timeout(30)
    page.mouse.down()
    page.mouse.up()


def _burst(page: "Page", db: Database) -> Burst:
    """Keys at a fixed beat, whatever the page does; then what the store holds."""
    page.bring_to_front()
    first = page.evaluate("benchmark.ready()")
    page.wait_for_timeout(2000)  # a person's pause: all that is fetched ahead is there
    # What was pressed earlier must have been saved by now, or it would be counted as the burst's.
    page.locator(".foot [data-waiting='0']").wait_for(state="attached", timeout=60_000)
    before = {row["uuid"] for row in decisions.recent(db, NAME, 10_000)}
    _press_at_a_beat(page)
    _wait_until_saved(page, db, len(before) + BURST)
    pressed = page.evaluate("first => benchmark.presses.slice(first)", first)
    key_of = {one.id: key for one, key in zip(classes.all_classes(db), KEYS, strict=False)}
    decided = [row for row in decisions.recent(db, NAME, 10_000) if row["uuid"] not in before]
    return Burst(
        [(int(one["image"]) if one["image"] else None, one["key"]) for one in pressed],
        [(row["image_id"], key_of[row["class_id"]]) for row in decided],
        [after["at"] - earlier["at"] for earlier, after in pairwise(pressed)],
    )


def _wait_until_saved(page: "Page", db: Database, expected: int) -> None:
    """Until the store holds what is expected, or the page has nothing more to send and some seconds have passed."""
    until = time.monotonic() + 5.0
    while len(decisions.recent(db, NAME, 10_000)) < expected:
        sent = page.locator(".foot [data-waiting='0']").count() > 0
        if sent and time.monotonic() > until:
            return
        if time.monotonic() > until + 60.0:
            raise AnnotatorError("The Annotate page has not been able to save its decisions for a minute.")
        time.sleep(0.05)
    time.sleep(1.0)  # time for a decision too many to come, if there is one


def _press_at_a_beat(page: "Page") -> None:
    started = time.perf_counter()
    for number in range(BURST):
        time.sleep(max(0.0, started + number * BURST_PAUSE - time.perf_counter()))
        page.keyboard.press(KEYS[number % len(KEYS)])

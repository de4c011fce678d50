"""Projects of any size, made in bulk: rows straight into the tables, random probabilities, the worker's own rankings.

Only as many images as a page asks pictures of are files, and they are the first in working order; all others are rows
whose file is nowhere. Everything is left to chance, but to the same one every time.
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from annotator.benchmark.harness.processes import say
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot import rankings
from annotator.snapshot.image_map import save_map
from annotator.store import classes, decisions, runs
from annotator.store.arrays import open_array, replacing, save_array
from annotator.store.database import Database
from annotator.store.registration import register

FILES = 200
CLICKED = 0.3  # of the images have one label
COMPLETE = 2000  # images at most, a tenth of the clicked ones, on which nothing is open
DECIDED_ON = 5000
SINCE = 1000  # decisions made after the run, at most a tenth of all
PEOPLE = ("Ann", "Bob", "Cy")
CACHE = 1_000_000  # KB: a million contents in no order fill indexes from all sides
AT_ONCE = 50_000  # rows written, or scored, in one go


@dataclass(frozen=True)
class Made:
    """A made-up project.

    files               ids of the images that are files, first in working order
    labeled             ids of some images with a label, where further decisions leave the order of work as it is
    rankings_seconds    how long the worker's rankings took
    """

    db: Database
    files: list[int]
    labeled: list[int]
    rankings_seconds: float


def make_project(folder: Path, image_count: int, class_count: int) -> Made:
    """A project of that size with clicks on a share of its images, some complete ones, and a run.

    folder    made; holds the project and the image files

    Raises DiskFull.
    """
    say(f"making {image_count:,} images, {class_count:,} classes")
    db = Database(folder / "project", create=True)
    with db.writing() as sql:
        sql.execute(f"PRAGMA cache_size = -{CACHE}")  # of this connection alone
    files = min(FILES, image_count // 2)
    _make_files(folder / "images", files)
    register(db, folder / "images", sorted(path.name for path in (folder / "images").iterdir()))
    classes.add_classes(db, [(f"class {number + 1}", "") for number in range(class_count)])
    _add_images(db, folder, range(files + 1, image_count + 1))
    chance = np.random.default_rng(0)
    clicked = np.sort(chance.permutation(np.arange(files + 1, image_count + 1))[: int(CLICKED * image_count)])
    chosen = chance.integers(1, class_count + 1, len(clicked))
    since = min(SINCE, len(clicked) // 10)
    _click(db, clicked[:-since], chosen[:-since])
    complete = clicked[: min(COMPLETE, len(clicked) // 10)]
    _complete(db, complete)
    newest = decisions.newest_decision(db)
    seconds = _add_run(db, image_count, class_count, newest)
    _click(db, clicked[-since:], chosen[-since:])
    with db.writing() as sql:
        sql.execute("ANALYZE")
    some = chance.permutation(clicked)[:DECIDED_ON]
    return Made(db, list(range(1, files + 1)), some.tolist(), seconds)


def _make_files(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    chance = np.random.default_rng(1)
    for number in range(count):
        pixels = chance.integers(0, 256, (60, 80, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((640, 480)).save(folder / f"{number:04d}.jpg", quality=85)


def _add_images(db: Database, folder: Path, ids: range) -> None:
    def rows() -> Iterator[tuple[int, str, str]]:
        for image_id in ids:
            # "ff": behind the files, whose contents may begin with anything, in working order.
            content = f"ff{hashlib.sha256(str(image_id).encode()).hexdigest()[2:]}"
            yield image_id, f"made/{image_id:08d}.jpg", content

    with db.writing() as sql:
        place = sql.execute("INSERT INTO folder (path) VALUES (?)", [str(folder / "nowhere")]).lastrowid
        sql.conn.executemany("INSERT INTO image (id, name, sha256, width, height) VALUES (?, ?, ?, 640, 480)", rows())
        sql.execute(
            """INSERT INTO file (folder_id, path, bytes, modified_ns, image_id)
            SELECT ?, name, 1, 1, id FROM image WHERE id BETWEEN ? AND ?""",
            [place, ids.start, ids.stop - 1],
        )


def _click(db: Database, image_ids: np.ndarray, class_ids: np.ndarray) -> None:
    """One positive label each, as so many single decisions would have left them."""
    now = time.time()
    first = decisions.newest_decision(db) + 1
    with db.writing() as sql:
        sql.conn.executemany(
            """INSERT INTO decision (id, uuid, action, image_id, class_id, state, source, annotator, milliseconds,
            decided_at) VALUES (?, ?, 'label', ?, ?, 1, 'click', ?, 900, ?)""",
            (
                (first + number, f"made-{image_id}", image_id, class_id, PEOPLE[number % 3], now - 0.9 * number)
                for number, (image_id, class_id) in enumerate(_pairs(image_ids, class_ids))
            ),
        )
        sql.conn.executemany(
            "INSERT INTO label (image_id, class_id, state, decision_id) VALUES (?, ?, 1, ?)",
            ((*pair, first + number) for number, pair in enumerate(_pairs(image_ids, class_ids))),
        )
        sql.conn.executemany(
            "UPDATE image SET stage = 2, stage_decision = ? WHERE id = ?",
            ((first + number, image_id) for number, image_id in enumerate(image_ids.tolist())),
        )


def _pairs(image_ids: np.ndarray, class_ids: np.ndarray) -> Iterator[tuple[int, int]]:
    return zip(image_ids.tolist(), class_ids.tolist(), strict=True)


def _complete(db: Database, image_ids: np.ndarray) -> None:
    said = [Decision(f"made-done-{one}", "done", PEOPLE[0], "click", image_id=one) for one in image_ids.tolist()]
    for start in range(0, len(said), 500):
        decisions.decide(db, said[start : start + 500])


def _add_run(db: Database, image_count: int, class_count: int, newest: int) -> float:
    """Publish probabilities made up; the seconds that their rankings took."""
    ids, class_ids = np.arange(1, image_count + 1), np.arange(1, class_count + 1)
    run_id = runs.begin(
        db,
        method="made up",
        parameters={},
        backbone=DEFAULT_BACKBONE,
        class_ids=class_ids.tolist(),
        images=image_count,
        last_decision_id=newest,
        threshold=0.5,
    )
    folder = db.paths.run(run_id)
    save_array(folder / "image_ids.npy", ids)
    _write_probabilities(folder / "probabilities.npy", image_count, class_count)
    say("ranking")
    started = time.perf_counter()
    made = rankings.build(db, newest, ids, class_ids, open_array(folder / "probabilities.npy"))
    rankings.save(folder, made)
    seconds = time.perf_counter() - started
    (folder / "head.safetensors").touch()
    save_map(db.paths.map(DEFAULT_BACKBONE), ids, np.random.default_rng(3).random((image_count, 2)))
    runs.publish(db, run_id, epochs=10, seconds=60.0, loss=[0.5] * 10)
    return seconds


def _write_probabilities(path: Path, image_count: int, class_count: int) -> None:
    """(N, C) float16, each class with a share of its own that is likely; a part of the rows in memory at a time."""
    chance = np.random.default_rng(2)
    rarity = chance.uniform(4, 30, class_count).astype(np.float32)
    with replacing(path) as part:
        array = np.lib.format.open_memmap(part, "w+", np.float16, (image_count, class_count))
        for start in range(0, image_count, AT_ONCE):
            some = chance.random((min(AT_ONCE, image_count - start), class_count), np.float32)
            array[start : start + len(some)] = some**rarity
        array.flush()

"""Projects of any size: rows written straight into the tables, random probabilities, the worker's own rankings.

The first MAX_IMAGE_FILES images in working order are files, as many as a page asks pictures of; all others are rows
whose file does not exist. Everything is random, and the same each time.
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.benchmark.scratch import print_progress
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.image_map import save_map
from annotator.store.database.arrays import replace_file_atomically
from annotator.store.database.database import Database, get_inserted_id
from annotator.store.labels import decisions
from annotator.store.pictures.name_keys import build_name_key
from harness import projects

MAX_IMAGE_FILES = 200
CLICKED_SHARE = 0.3  # share of the images that have one label
MAX_COMPLETE_IMAGES = 2000  # images at most, a tenth of the clicked ones, on which nothing is open
LABELED_SAMPLE_IMAGES = 5000
MAX_LATER_DECISIONS = 1000  # decisions made after the run, at most a tenth of all
PEOPLE_NAMES = ("Ann", "Bob", "Cy")
CACHE_KILOBYTES = 1_000_000  # KB: a million contents in no order fill indexes from all sides
PROBABILITY_ROWS_PER_BLOCK = 50_000  # rows of probabilities in memory


@dataclass(frozen=True)
class BulkProject:
    """A project made by `make_bulk_project`.

    Attributes:
        file_ids: The ids of the images that are files, first in working order.
        labeled_ids: The ids of some images with a label, on which further decisions leave the working order as it is.
        rankings_seconds: The time that the worker's rankings took.
    """

    db: Database
    file_ids: list[int]
    labeled_ids: list[int]
    rankings_seconds: float


def make_bulk_project(folder: Path, image_count: int, class_count: int) -> BulkProject:
    """Make a project of that size with clicks on a share of its images, some complete images, and a run.

    Args:
        folder: The new folder for the project and the image files.
        image_count: The number of images.
        class_count: The number of classes.

    Raises:
        DiskFull: The disk is full.
    """
    print_progress(f"making {image_count:,} images, {class_count:,} classes")
    files = min(MAX_IMAGE_FILES, image_count // 2)
    projects.write_noise_images(folder / "images", files, (80, 60), ".jpg", enlarged=(640, 480))
    db = projects.make_empty_project(folder, class_count)
    with db.writing() as sql:
        sql.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")  # of this connection alone
    add_images(db, folder, range(files + 1, image_count + 1))
    chance = np.random.default_rng(0)
    clicked = np.sort(chance.permutation(np.arange(files + 1, image_count + 1))[: int(CLICKED_SHARE * image_count)])
    chosen = chance.integers(1, class_count + 1, len(clicked))
    since = min(MAX_LATER_DECISIONS, len(clicked) // 10)
    insert_clicks(db, clicked[:-since], chosen[:-since])
    _complete_images(db, clicked[: min(MAX_COMPLETE_IMAGES, len(clicked) // 10)])
    seconds = _add_run(db, image_count, class_count)
    insert_clicks(db, clicked[-since:], chosen[-since:])
    with db.writing() as sql:
        sql.execute("ANALYZE")
    labeled = chance.permutation(clicked)[:LABELED_SAMPLE_IMAGES]
    return BulkProject(db, list(range(1, files + 1)), labeled.tolist(), seconds)


def add_images(db: Database, folder: Path, ids: range) -> None:
    """Add images without files, all in one folder that does not exist, with these ids and random capture times."""
    chance = np.random.default_rng(4)
    captured_at = chance.integers(1_500_000_000, 1_700_000_000, len(ids)).tolist()

    def iterate_rows(folder_id: int) -> Iterator[tuple[int, str, str, str, float]]:
        for image_id, seconds in zip(ids, captured_at, strict=True):
            # "ff": behind the files, whose contents may begin with anything, in working order.
            content = f"ff{hashlib.sha256(str(image_id).encode()).hexdigest()[2:]}"
            name = f"made/{image_id:08d}.jpg"
            yield image_id, name, content, build_name_key(folder_id, name), float(seconds)

    with db.writing() as sql:
        folder_id = get_inserted_id(sql.execute("INSERT INTO folder (path) VALUES (?)", [str(folder / "nowhere")]))
        sql.conn.executemany(
            """INSERT INTO image (id, name, sha256, width, height, name_key, captured_at, capture_read)
            VALUES (?, ?, ?, 640, 480, ?, ?, 1)""",
            iterate_rows(folder_id),
        )
        sql.execute(
            """INSERT INTO file (folder_id, path, bytes, modified_ns, image_id)
            SELECT ?, name, 1, 1, id FROM image WHERE id BETWEEN ? AND ?""",
            [folder_id, ids.start, ids.stop - 1],
        )


def insert_clicks(db: Database, image_ids: np.ndarray, class_ids: np.ndarray) -> None:
    """Insert one positive label for each image, as single decisions would have left them."""
    decided_at = time.time()
    first = decisions.get_newest_decision_id(db) + 1
    with db.writing() as sql:
        sql.conn.executemany(
            """INSERT INTO decision (id, uuid, action, image_id, class_id, state, source, annotator, milliseconds,
            decided_at) VALUES (?, ?, 'label', ?, ?, 1, 'click', ?, 900, ?)""",
            (
                (
                    first + number,
                    f"made-{image_id}",
                    image_id,
                    class_id,
                    PEOPLE_NAMES[number % 3],
                    decided_at - 0.9 * number,
                )
                for number, (image_id, class_id) in enumerate(_pair_ids(image_ids, class_ids))
            ),
        )
        sql.conn.executemany(
            "INSERT INTO label (image_id, class_id, state, decision_id) VALUES (?, ?, 1, ?)",
            ((*pair, first + number) for number, pair in enumerate(_pair_ids(image_ids, class_ids))),
        )
        sql.conn.executemany(
            "UPDATE image SET stage = 2, stage_decision = ? WHERE id = ?",
            ((first + number, image_id) for number, image_id in enumerate(image_ids.tolist())),
        )


def _pair_ids(image_ids: np.ndarray, class_ids: np.ndarray) -> Iterator[tuple[int, int]]:
    return zip(image_ids.tolist(), class_ids.tolist(), strict=True)


def _complete_images(db: Database, image_ids: np.ndarray) -> None:
    completed = [
        Decision(f"made-done-{id_}", "done", PEOPLE_NAMES[0], "click", image_id=id_) for id_ in image_ids.tolist()
    ]
    for start in range(0, len(completed), 500):
        decisions.save(db, completed[start : start + 500])


def _add_run(db: Database, image_count: int, class_count: int) -> float:
    """Publish random probabilities and a random map; return the seconds that the rankings took."""
    run_id = projects.begin_run(db)
    _write_probabilities(db.paths.run(run_id) / "probabilities.npy", image_count, class_count)
    positions = np.random.default_rng(3).random((image_count, 2))
    save_map(db.paths.map(DEFAULT_BACKBONE), np.arange(1, image_count + 1), positions)
    print_progress("ranking")
    return projects.finish_run(db, run_id)


def _write_probabilities(path: Path, image_count: int, class_count: int) -> None:
    """Write (images, classes) float16, with its own share of likely cells per class. Keeps one block in memory."""
    chance = np.random.default_rng(2)
    rarity = chance.uniform(4, 30, class_count).astype(np.float32)
    with replace_file_atomically(path) as part:
        array = np.lib.format.open_memmap(part, "w+", np.float16, (image_count, class_count))
        for start in range(0, image_count, PROBABILITY_ROWS_PER_BLOCK):
            rows = chance.random((min(PROBABILITY_ROWS_PER_BLOCK, image_count - start), class_count), np.float32)
            array[start : start + len(rows)] = rows**rarity
        array.flush()

"""Projects without image files: made-up names, classes, and labels as people would have given them one by one.

Everything is random, and the same each time. A labeled project and an empty one have the same images and classes under
the same ids, so that their labels can be compared as they stand.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from harness.bulk import CACHE_KILOBYTES, PEOPLE_NAMES, add_images

from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.imports.commit import suspend_triggers

IMAGES_PER_BATCH = 2000  # images
UNSURE_LABELS_PER_IMAGE = 0.2  # unsure labels an image
TALLY_QUERIES = (
    "SELECT 'stage', stage, '', count(*) FROM image GROUP BY stage",
    "SELECT 'label', class_id, state, count(*) FROM label GROUP BY class_id, state",
    "SELECT kind, one, two, count(*) FROM counted GROUP BY kind, one, two",
)
"""What the triggers would have counted, a row at a time."""


def make_projects(
    labeled: Path,
    empty: Path,
    image_count: int,
    class_count: int,
    present: float,
    absent: float,
    progress: Callable[[int, int], None],
) -> int:
    """Make the labeled and the empty project; return the number of labels.

    Args:
        labeled: The folder of the project that gets labels.
        empty: The folder of the project that gets none.
        image_count: The number of images of each project.
        class_count: The number of classes of each project.
        present: The mean number of labels "present" of an image.
        absent: The mean number of labels "absent" of an image; where more are wanted than fit, all other classes are
            absent.
        progress: Called with (images done, of) while labels are made.
    """
    for folder in (labeled, empty):
        db = Database(folder, create=True)
        with db.writing() as sql:
            sql.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")  # of this connection alone
        add_images(db, folder, range(1, image_count + 1))
        classes.add_classes(db, [(f"class {number + 1}", "") for number in range(class_count)])
    return _add_labels(Database(labeled), image_count, class_count, present, absent, progress)


def _add_labels(
    db: Database,
    image_count: int,
    class_count: int,
    present: float,
    absent: float,
    progress: Callable[[int, int], None],
) -> int:
    chance = np.random.default_rng(0)
    done, started = 0, time.time() - 40_000_000
    with db.writing() as sql, suspend_triggers(sql, image_count * class_count):
        sql.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
        for first in range(1, image_count + 1, IMAGES_PER_BATCH):
            count = min(IMAGES_PER_BATCH, image_count + 1 - first)
            cells = list(_draw_cells(chance, first, count, class_count, present, absent))
            sql.conn.executemany(
                """INSERT INTO decision (id, uuid, action, image_id, class_id, state, source, annotator, milliseconds,
                decided_at) VALUES (?, ?, 'label', ?, ?, ?, 'click', ?, 900, ?)""",
                (
                    (number, f"made-{number:012}", *cell, PEOPLE_NAMES[number % 3], started + 0.9 * number)
                    for number, cell in enumerate(cells, start=done + 1)
                ),
            )
            sql.conn.executemany(
                "INSERT INTO label (image_id, class_id, state, decision_id) VALUES (?, ?, ?, ?)",
                ((*cell, number) for number, cell in enumerate(cells, start=done + 1)),
            )
            done += len(cells)
            progress(first - 1 + count, image_count)
        sql.execute(
            """UPDATE image SET stage_decision = newest, stage = iif(answered = ?, 3, 2) FROM (
            SELECT image_id, count(*) AS answered, max(decision_id) AS newest FROM label GROUP BY image_id) l
            WHERE l.image_id = image.id""",
            [class_count],
        )
        sql.execute("DELETE FROM tally")
        for query in TALLY_QUERIES:
            sql.execute(f"INSERT INTO tally {query}")
    with db.writing() as sql:
        sql.execute("ANALYZE")
    return done


def _draw_cells(
    chance: np.random.Generator, first: int, count: int, class_count: int, present: float, absent: float
) -> Iterator[tuple[int, int, int]]:
    """Yield (image, class, state) of `count` images from `first` on, ascending."""
    draws = chance.random((count, class_count))
    shares = np.array([present, UNSURE_LABELS_PER_IMAGE, absent]) / class_count
    limits = np.minimum(np.cumsum(shares), 1.0)
    states = np.select([draws < limit for limit in limits], [PRESENT, UNSURE, ABSENT], 9)
    rows, columns = np.nonzero(states != 9)
    yield from zip((rows + first).tolist(), (columns + 1).tolist(), states[rows, columns].tolist(), strict=True)

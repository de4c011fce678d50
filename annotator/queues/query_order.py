"""Query orders: the image orders of Annotate, computed by the worker.

Each run stores one order per strategy, over at most MAX_ORDER_IMAGES unlabeled images. Other images
follow by sha256. Incomplete images come last, or first on request.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.settings import DEFAULT_ORDER
from annotator.store.database.arrays import open_array, save_array
from annotator.store.database.database import Database
from annotator.store.images import sequences
from annotator.store.labels import label_cells
from annotator.store.labels.label_cells import load_incomplete_image_ids
from annotator.store.runs import runs
from spmll.labels import PRESENT, UNSEEN
from spmll.query_strategies import STRATEGIES, order_candidates
from spmll.query_strategies.base import Strategy
from spmll.query_strategies.incomplete import INCOMPLETE
from spmll.query_strategies.mix import MIX, MIXED_STRATEGIES, interleave
from spmll.query_strategies.random import RANDOM
from spmll.query_strategies.unusual import UNUSUAL
from spmll.rows import Rows


@dataclass(frozen=True)
class FileSequence:
    """A query order by file name or time. It has the fields of `Strategy`."""

    name: str
    title: str
    about: str
    paper: str = ""
    url: str = ""


_CONTINUES_TEXT = "Continues after your last image. Skipped images come last."
NAME_SEQUENCE = FileSequence(
    sequences.BY_NAME, "File name", f"Folder by folder, by file name (2 before 10). {_CONTINUES_TEXT}"
)
TIME_SEQUENCE = FileSequence(
    sequences.BY_TIME,
    "Capture time",
    f"Oldest picture first (EXIF); those without a time last, by name. {_CONTINUES_TEXT}",
)

QUERY_ORDERS: dict[str, Strategy | FileSequence] = STRATEGIES | {
    order.name: order for order in (INCOMPLETE, NAME_SEQUENCE, TIME_SEQUENCE)
}
ORDERS_BEFORE_FIRST_RUN = [name for name, strategy in STRATEGIES.items() if strategy.needs == "features"]
SEARCH_ORDER = "search"  # all images with an open class, the unusual ones first: where a class has no example
STORED_ORDERS = {*STRATEGIES, INCOMPLETE.name, SEARCH_ORDER} - {RANDOM.name}  # with each run
MAX_CACHED_ORDERS = 16  # orders kept in memory, mapped from the disk
MAX_ORDER_IMAGES = 50_000  # images in an order; of more, every run samples anew
EMPTY_ORDER = np.zeros(0, np.int64)


def get_default_name(db: Database) -> str:
    return db.get_setting("order", DEFAULT_ORDER)


def set_default(db: Database, name: str) -> None:
    """Set the default query order. Raises AnnotatorError for an unknown name."""
    find_strategy(name)
    db.set_setting("order", name)


def find_strategy(name: str) -> Strategy | FileSequence:
    """Return the strategy or file sequence of this name. Raises AnnotatorError for an unknown name."""
    if name not in QUERY_ORDERS:
        known = did_you_mean(name, QUERY_ORDERS, max_listed=len(QUERY_ORDERS))
        raise AnnotatorError(f"No order is called {name!r}. {known}")
    return QUERY_ORDERS[name]


def build(
    db: Database,
    image_ids: np.ndarray,
    features: Rows,
    probabilities: Rows,
    labels: Rows,
    seed: int,
) -> dict[str, np.ndarray]:
    """Compute the image order of each query strategy except random, over readable images without labels.

    INCOMPLETE orders partly answered images instead. SEARCH_ORDER covers both, unusual images first.

    Args:
        image_ids: (N,) int64.
        features: (N, D) float16.
        probabilities: (N, C), nan without model.
        labels: (N, C) int8.

    Returns:
        Name -> up to MAX_ORDER_IMAGES image ids, int64, best first.
    """
    rng = np.random.default_rng(seed)
    is_untouched, is_incomplete = (
        np.isin(image_ids, label_cells.load_untouched_image_ids(db)),
        np.isin(image_ids, load_incomplete_image_ids(db)),
    )
    rows = _sample_rows(is_untouched, rng)
    mixed = [strategy.name for strategy in MIXED_STRATEGIES]
    others = [name for name in STRATEGIES if name not in mixed and name != MIX.name]
    orders = {
        name: order_candidates(name, features, probabilities, labels, rows, rng).rows for name in (*mixed, *others)
    }
    orders[MIX.name] = interleave([orders[name] for name in mixed])
    del orders[RANDOM.name]
    incomplete_rows = np.flatnonzero(is_incomplete)
    searched = _sample_rows(is_untouched | is_incomplete, rng)
    orders[SEARCH_ORDER] = order_candidates(UNUSUAL.name, features, probabilities, labels, searched, rng).rows
    orders[INCOMPLETE.name] = INCOMPLETE.rank(features, probabilities, labels, incomplete_rows, rng)[:MAX_ORDER_IMAGES]
    return {name: image_ids[ordered] for name, ordered in orders.items()}


def publish_first(db: Database, image_ids: np.ndarray, features: Rows, seed: int) -> None:
    """Compute and store the query orders that need only embeddings, before the first training. Raises DiskFull."""
    rng = np.random.default_rng(seed)
    is_untouched = np.isin(image_ids, label_cells.load_untouched_image_ids(db))
    rows = _sample_rows(is_untouched, rng)
    # These strategies ask only whether an image has an answer.
    labels = np.where(is_untouched, UNSEEN, PRESENT).astype(np.int8)[:, None]
    save(
        db.paths.first_orders,
        {
            name: image_ids[order_candidates(name, features, None, labels, rows, rng).rows]
            for name in ORDERS_BEFORE_FIRST_RUN
        },
    )


def _sample_rows(is_untouched: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the indexes of the True rows, ascending, randomly reduced to MAX_ORDER_IMAGES."""
    rows = np.flatnonzero(is_untouched)
    return np.sort(rng.choice(rows, MAX_ORDER_IMAGES, replace=False)) if len(rows) > MAX_ORDER_IMAGES else rows


def save(folder: Path, orders: dict[str, np.ndarray]) -> None:
    """Write query orders to the folder of a training. Raises DiskFull."""
    for name, image_ids in orders.items():
        save_array(_get_file(folder, name), image_ids)


def load(db: Database, name: str) -> np.ndarray:
    """Return the image ids (int64) of a stored query order. Some may have been labeled since.

    Empty for "random", file sequences and old trainings.
    """
    if name not in STORED_ORDERS:
        return EMPTY_ORDER
    run = runs.load_current_run(db)
    if run is not None:
        file, version = _get_file(db.paths.run(run.id), name), run.id
    else:
        file = _get_file(db.paths.first_orders, name)
        try:
            version = file.stat().st_mtime_ns
        except OSError:
            return EMPTY_ORDER
    return db.caches.get("query orders", (version, name), lambda: _load_array(file), MAX_CACHED_ORDERS)


def _get_file(folder: Path, name: str) -> Path:
    return folder / "orders" / f"{name}.npy"


def _load_array(file: Path) -> np.ndarray:
    try:
        return np.asarray(open_array(file, np.int64, 1))
    except (OSError, ValueError, EOFError):
        return EMPTY_ORDER

"""In which order Annotate shows images: the order in use, and what a run leaves for it.

The worker works out every order of models/query_strategies/ once a run, over at most CONSIDERED images without a
label; the
page walks the one that is chosen and takes what is still free. Whatever is not in it - images that came since, skipped
ones, all of them before the first run - follows in the order of the sha256, which is as good as random. Incomplete
images come after them, or first where that is chosen. A run leaves an order of these, too, and the page counts the
answers of its beginning once more (store/incomplete.py).
"""

from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.settings import DEFAULT_ORDER
from annotator.store import cells, runs
from annotator.store.arrays import open_array, save_array
from annotator.store.database import Database
from annotator.store.incomplete import incomplete
from models.query_strategies import STRATEGIES, order
from models.query_strategies.base import Strategy
from models.query_strategies.incomplete import INCOMPLETE
from models.query_strategies.mix import MIX, MIXED, taking_turns
from models.query_strategies.random import RANDOM

ORDERS = STRATEGIES | {INCOMPLETE.name: INCOMPLETE}
ORDERS_KEPT = 16  # in memory, mapped from the disk
CONSIDERED = 50_000  # of a million images a fresh sample of so many in every run


def chosen(db: Database) -> str:
    """The order of this project, for pages that do not ask for another."""
    return db.setting("order", DEFAULT_ORDER)


def choose(db: Database, name: str) -> None:
    """Use this order from now on. Raises AnnotatorError listing the orders there are."""
    about(name)
    db.set_setting("order", name)


def about(name: str) -> Strategy:
    """What there is to know of an order. Raises AnnotatorError for one there is not, listing those there are."""
    if name not in ORDERS:
        raise AnnotatorError(f"No order is called {name!r}. {did_you_mean(name, ORDERS, shown=len(ORDERS))}")
    return ORDERS[name]


def build(
    db: Database,
    image_ids: np.ndarray,
    features: np.ndarray,
    probabilities: np.ndarray,
    labels: np.ndarray,
    seed: int,
) -> dict[str, np.ndarray]:
    """Every order but the random one, over the images that nobody has labeled, skipped, or found broken; and that of
    the incomplete images.

    image_ids        (N,) int64, in any order: what the rows of the others are
    features         (N, D) float16
    probabilities    (N, C) float, nan where there is no model
    labels           (N, C) int8, models/labels.py
    returns          name -> (K,) int64 image ids, best first; K at most CONSIDERED
    """
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(np.isin(image_ids, cells.untouched(db)))
    if len(rows) > CONSIDERED:
        rows = np.sort(rng.choice(rows, CONSIDERED, replace=False))
    mixed = [strategy.name for strategy in MIXED]
    others = [name for name in STRATEGIES if name not in mixed and name != MIX.name]
    found = {name: order(name, features, probabilities, labels, rows, rng).rows for name in (*mixed, *others)}
    found[MIX.name] = taking_turns([found[name] for name in mixed])
    del found[RANDOM.name]
    partly = np.flatnonzero(np.isin(image_ids, incomplete(db)))
    found[INCOMPLETE.name] = INCOMPLETE.rank(features, probabilities, labels, partly, rng)[:CONSIDERED]
    return {name: image_ids[one] for name, one in found.items()}


def save(folder: Path, found: dict[str, np.ndarray]) -> None:
    """Write them beside the run's probabilities. Raises DiskFull."""
    for name, image_ids in found.items():
        save_array(_place(folder, name), image_ids)


def ahead(db: Database, name: str) -> np.ndarray:
    """The images of an order as the current run left it, (K,) int64 ids, some labeled since; empty where there is none.

    There is none of "random", before the first run, and of a run of an older version.
    """
    run = runs.current_run(db) if name != "random" else None
    if run is None:
        return NOTHING
    return db.caches.get("query orders", (run.id, name), lambda: _load(_place(db.paths.run(run.id), name)), ORDERS_KEPT)


NOTHING = np.zeros(0, np.int64)


def _place(folder: Path, name: str) -> Path:
    return folder / "orders" / f"{name}.npy"


def _load(place: Path) -> np.ndarray:
    try:
        return np.asarray(open_array(place))
    except (OSError, ValueError, EOFError):
        return NOTHING

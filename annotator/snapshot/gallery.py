"""The Gallery: which images a filter shows, in which order, and what is known of those on screen.

A listing is the images of one filter in one order at one moment, which its `version` names. A page that scrolls sends
the version it was given and gets parts of the same listing: no decision, by anybody, moves or hides an image on
screen. Only what a tile shows (labels, flag, comments) is read again each time. Without a version, and with a version
that is no longer kept (LISTINGS_KEPT were used since, or the server was started again), the listing is made as of now;
the answer then has another version, and the page looks up where its image is now (`place`). `changed` says that a new
listing might differ.
"""

import threading
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

import numpy as np

from annotator.errors import AnnotatorError
from annotator.indexing import positions
from annotator.snapshot import facts
from annotator.snapshot.facts import Fact, Values
from annotator.snapshot.filters import FILTERS, MOST_CHOICES, GalleryFilter
from annotator.snapshot.likeness import similar
from annotator.snapshot.listed_rows import RowsByValue, SortedRows
from annotator.snapshot.predictions import Predictions, read_predictions
from annotator.snapshot.sorts import BY_COLUMN, BY_NAME
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.gallery import attribute_columns, tiles
from annotator.store.gallery import columns as image_columns
from annotator.store.gallery.columns import ImageColumns
from annotator.store.gallery.values import Choices
from annotator.store.images import attributes
from annotator.store.people import blindness
from annotator.store.runs import runs

LISTINGS_KEPT = 32  # 4 bytes an image each, 6 of those by probability ...
LISTING_BYTES = 64_000_000  # ... but no more than these together
MOST_IDS = 5000
FEW = 16  # a mask with fewer than one image in this many counts as few
LARGEST_BITS = 0x7C00  # of a float16 from 0 on; the bits sort as the numbers do
NO_VALUE = LARGEST_BITS + 1
COLUMNS_KEPT = 8  # probabilities of a class: 2 bytes an image each
ORDERS_KEPT = 4  # by facts that are not kept in half precision: 4 bytes an image each


@dataclass(frozen=True)
class Sorting:
    """The order of a listing.

    Images of equal value are in the order of names. An unanswered image has no decision, and 0 labels.

    Attributes:
        by: The name of one of sorts.SORTS. The newest decision; how many classes are present; the probability of
            `class_id` by the current version of the current run; and so on.
        down: From the last to the first; images without a value (no decision, no capture time, no probability, no
            twin, not measured) come last either way, by name.
        class_id: Only with "probability".
        like: Only with "like": the images that all are compared with; those most like them come first.
        example: Only with "like", instead of images: the id of an example from elsewhere
            (store/networks/search_examples.py).
        column: Only with "column": the imported column, by whose numbers or else texts the images are sorted.
    """

    by: str = "name"
    down: bool = False
    class_id: int | None = None
    like: tuple[int, ...] = ()
    example: str = ""
    column: str = ""


@dataclass(frozen=True, eq=False)
class Listing:
    """The images of a filter in order, as of one version.

    Attributes:
        rows: Rows of `image_ids`, in the order of the listing.
    """

    version: str
    image_ids: np.ndarray
    rows: SortedRows

    def ids(self, start: int, count: int) -> list[int]:
        """Return the ids of at most `count` images from place `start` on."""
        return self.image_ids[self.rows.part(start, start + count)].tolist()

    def place(self, image_id: int) -> int | None:
        """Return the place of an image in the listing, None where it is not shown."""
        [row], [known] = positions([image_id], self.image_ids)
        return self.rows.place(int(row)) if known else None


@dataclass(frozen=True)
class Window:
    """A part of a listing: the images from place `start` on, out of `total`.

    Attributes:
        probabilities: Of the class that is sorted by, by image.
        measures: The number that is sorted by in words, by image.
    """

    total: int
    start: int
    version: str
    changed: bool
    images: list[tiles.Tile]
    probabilities: dict[int, float]
    measures: dict[int, str]


class _Listings:
    """The listings used last, by filter, order and version."""

    def __init__(self):
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[GalleryFilter, Sorting, str], Listing] = OrderedDict()

    def get(self, filter_: GalleryFilter, sorting: Sorting, version: str) -> Listing | None:
        with self._lock:
            key = (filter_, sorting, version)
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, filter_: GalleryFilter, sorting: Sorting, listing: Listing) -> None:
        with self._lock:
            self._kept[filter_, sorting, listing.version] = listing
            size = sum(kept.rows.size for kept in self._kept.values())
            while len(self._kept) > LISTINGS_KEPT or (size > LISTING_BYTES and len(self._kept) > 1):
                size -= self._kept.popitem(last=False)[1].rows.size


def listing(db: Database, filter_: GalleryFilter, sorting: Sorting, version: str = "") -> Listing:
    """Return the images of a filter in an order.

    Args:
        db: The project's database.
        filter_: The images that are listed.
        sorting: Their order.
        version: Of the listing that is on screen; "": as of now.

    Raises:
        AnnotatorError: For an unknown or archived class and an unknown order.
    """
    listings = db.caches.get("gallery", "listings", _Listings, 1)
    if version and (kept := listings.get(filter_, sorting, version)):
        return kept
    _refuse(db, filter_, sorting)
    columns = image_columns.kept(db)
    with columns.lock, db.reading():
        now = current_version(db, filter_, sorting)
        if kept := listings.get(filter_, sorting, now):
            return kept
        columns.refresh(db)
        rows = _sorted(db, columns, mask_of(db, columns, filter_), sorting)
        made = Listing(now, columns.image_ids, rows)
    listings.keep(filter_, sorting, made)
    return made


def current_version(db: Database, filter_: GalleryFilter, sorting: Sorting) -> str:
    """Return the version of a listing made now.

    It depends on decisions, changes of classes, images, their names and how they look; sorted by probability, on the
    run and its version; with a filter or an order by imported columns, on these; and where images to answer blind are
    hidden, on which these are.
    """
    parts: list[float] = [*image_columns.stamp(db)]
    if sorting.by == "probability" and (run := runs.current_run(db)):
        parts += [run.id, run.version]
    if sorting.by == "like":
        parts += [similar.stamp(db)[1]]
    if filter_.asks_attributes or BY_NAME[sorting.by].imported:
        parts += attributes.stamp(db)
    if filter_.blind:
        parts += blindness.stamp(db)
    return ".".join(map(str, parts))


def window(db: Database, filter_: GalleryFilter, sorting: Sorting, start: int, count: int, version: str = "") -> Window:
    """Return a part of a listing, as `listing` takes and raises it, with what its tiles show now.

    Args:
        db: The project's database.
        filter_: Which images are listed.
        sorting: Their order.
        start: The first place; past the end there are no images.
        count: The number of images.
        version: The version of the listing that the page has; "" for none.
    """
    shown = listing(db, filter_, sorting, version)
    ids = shown.ids(start, count)
    return Window(
        len(shown.rows),
        start,
        shown.version,
        shown.version != current_version(db, filter_, sorting),
        tiles.read(db, ids),
        _probabilities(db, ids, sorting.class_id) if sorting.by == "probability" else {},
        _likeness(db, ids, sorting) if sorting.by == "like" else _measures(db, ids, sorting),
    )


def ids_between(
    db: Database, filter_: GalleryFilter, sorting: Sorting, first: int, last: int, version: str = ""
) -> list[int]:
    """Return the ids of the images from place `first` to place `last`, which is included.

    Raises as `listing` does, and AnnotatorError for more than MOST_IDS places.
    """
    if last - first >= MOST_IDS:
        raise AnnotatorError(f"At most {MOST_IDS:,} images can be selected at once; these are {last - first + 1:,}.")
    return listing(db, filter_, sorting, version).ids(first, max(0, last - first + 1))


def find(db: Database, text: str, count: int) -> list[tuple[int, str]]:
    """Return at most `count` images with this text in their name: (id, name), best first.

    Files called exactly so, with or without a suffix, come before those whose name begins so, and these before all
    others that contain the text; then by name. [] for "".
    """
    if not text:
        return []
    with up_to_date(db) as columns:
        ids = columns.image_ids[columns.names.best_matches(text, count)].tolist()
        return [(tile.image.id, tile.image.name) for tile in tiles.read(db, ids)]


def is_ready(db: Database) -> bool:
    """Return whether the images have been read into memory."""
    return image_columns.kept(db).stamp != image_columns.NOTHING


def prepare(db: Database) -> None:
    """Read the images into memory, which takes seconds with a million.

    Every other function of this module that needs them does so, too.
    """
    with up_to_date(db):
        pass


@contextmanager
def up_to_date(db: Database) -> Generator[ImageColumns]:
    """Give the columns as of now; inside the context nobody else reads or changes them."""
    columns = image_columns.kept(db)
    with columns.lock, db.reading():
        columns.refresh(db)
        yield columns


def choices(db: Database) -> dict[str, list[tuple[str, str]]]:
    """Return what can be chosen or is proposed for each filter, as (value, words), at most MOST_CHOICES of each."""
    with up_to_date(db) as columns:
        return {one.name: list(one.choices(db, columns))[:MOST_CHOICES] for one in FILTERS}


def offered_facts(db: Database) -> list[tuple[str, str]]:
    """Return the facts of which a value is known and the imported columns, as (name, label)."""
    with up_to_date(db) as columns:
        return facts.offered(db, columns)


def _refuse(db: Database, filter_: GalleryFilter, sorting: Sorting) -> None:
    if sorting.by not in BY_NAME:
        raise AnnotatorError(f"There is no order {sorting.by!r}. There is: {', '.join(BY_NAME)}.")
    named = filter_.class_ids
    if sorting.by == "probability":
        if sorting.class_id is None:
            raise AnnotatorError("To sort by probability, name a class.")
        named.add(sorting.class_id)
    if sorting.by == "like" and not (sorting.like or sorting.example):
        raise AnnotatorError("To sort by likeness, name the image that all are compared with.")
    if sorting.by == BY_COLUMN and not sorting.column:
        raise AnnotatorError("To sort by an imported column, name it.")
    if unknown := sorted(named - {class_.id for class_ in classes.all_classes(db)}):
        raise AnnotatorError(
            f"There is no class {', '.join(map(str, unknown))}. Was it archived, or named by an old page? Reload it."
        )


def mask_of(db: Database, columns: ImageColumns, filter_: GalleryFilter) -> np.ndarray | None:
    """Return which images a filter shows, (N,) bool; None: all."""
    masks = filter_.masks(db, columns)
    if filter_.blind and (hidden := blindness.all_hidden_from(db, filter_.blind)):
        masks.append(~np.isin(columns.image_ids, list(hidden)))
    return reduce(np.logical_and, masks) if masks else None


def _sorted(db: Database, columns: ImageColumns, mask: np.ndarray | None, sorting: Sorting) -> SortedRows:
    """Return the rows of a mask in order; mask None: all rows."""
    by_name, rank = columns.names.order, columns.names.rank
    fact = _fact_of(db, columns, sorting)
    values = fact.read(db, columns) if fact else None
    if sorting.by == "decided":
        order, has_value = columns.by_decision(), columns.newest > 0
    elif sorting.by == "twins":
        order, has_value = columns.twins.order, columns.twins.has
    elif fact and values is not None and not _is_half(values):
        order, has_value = _order(db, columns, fact, values), facts.is_known(values)
    else:
        rows = _those(mask, by_name, rank)
        if sorting.by == "name":
            return SortedRows(rows[::-1] if sorting.down else rows)
        return _by_value(rows, _values(db, columns, sorting)[rows], sorting.down)
    rows = _those(mask, order)
    without = _those(~has_value if mask is None else mask & ~has_value, by_name, rank)
    return SortedRows(np.concatenate([rows[::-1] if sorting.down else rows, without]))


def _fact_of(db: Database, columns: ImageColumns, sorting: Sorting) -> Fact | None:
    """Return the fact that is sorted by; None where it is no fact."""
    if sorting.by == BY_COLUMN:
        return facts.find(db, columns, f"{facts.COLUMN}{sorting.column}")
    return facts.BY_NAME.get(sorting.by)


def _is_half(values: Values) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == np.float16


def _order(db: Database, columns: ImageColumns, fact: Fact, values: Values) -> np.ndarray:
    """Return the rows with a value, (n,) int32, by their values and then by name."""
    if values is columns.captured:
        return columns.by_capture()

    def sort() -> np.ndarray:
        rows = columns.names.order[facts.is_known(values)[columns.names.order]]
        keys = values.codes if isinstance(values, Choices) else values
        return rows[np.argsort(keys[rows], kind="stable")]

    key = (fact.name, columns.stamp.change, *attribute_columns.stamp(db, columns))
    return db.caches.get("orders by facts", key, sort, ORDERS_KEPT)


def _those(mask: np.ndarray | None, order: np.ndarray, rank: np.ndarray | None = None) -> np.ndarray:
    """Return the rows of a mask in an order; mask None: all rows.

    Args:
        mask: (N,) bool; None: all rows.
        order: (N,) all rows in the wanted order.
        rank: The place of each row in the order, by which few rows are sorted more quickly.
    """
    if mask is None:
        return order
    if rank is not None and np.count_nonzero(mask) * FEW < len(mask):
        rows = np.flatnonzero(mask).astype(np.int32)
        return rows[np.argsort(rank[rows])]
    return np.compress(mask[order], order)


def _by_value(rows: np.ndarray, values: np.ndarray, down: bool) -> RowsByValue:
    """Return rows, given by name, by their values; rows with NO_VALUE last either way."""
    if not down:
        return RowsByValue(rows, values)
    has_value = values != NO_VALUE
    if has_value.all():
        return RowsByValue(rows[::-1], LARGEST_BITS - values[::-1])
    falling = [LARGEST_BITS - values[has_value][::-1], values[~has_value]]
    return RowsByValue(np.concatenate([rows[has_value][::-1], rows[~has_value]]), np.concatenate(falling))


def _values(db: Database, columns: ImageColumns, sorting: Sorting) -> np.ndarray:
    """Return what rows are sorted by, (N,) uint16; NO_VALUE where a row has none."""
    if fact := facts.BY_NAME.get(sorting.by):
        return np.minimum(fact.numbers(db, columns).view(np.uint16), NO_VALUE)  # the bits of nan are larger
    if sorting.by == "like":
        distances = 1 - similar.similarities(db, columns.image_ids, sorting.like, sorting.example)
        return np.minimum(distances.astype(np.float16).view(np.uint16), NO_VALUE)
    if sorting.by == "labels":
        return columns.positives.view(np.uint16)
    return _bits(db, columns, sorting.class_id or 0)


def _bits(db: Database, columns: ImageColumns, class_id: int) -> np.ndarray:
    """Return the bits of each row's probability of the class, (N,) uint16; NO_VALUE without a probability."""
    predictions = read_predictions(db)
    if predictions is None:
        return np.full(len(columns), NO_VALUE, np.uint16)
    stamp = columns.stamp
    key = (predictions.run.id, predictions.run.version, class_id, stamp.image)
    return db.caches.get(
        "gallery probabilities", key, lambda: _read_bits(db, predictions, columns, class_id), COLUMNS_KEPT
    )


def _read_bits(db: Database, predictions: Predictions, columns: ImageColumns, class_id: int) -> np.ndarray:
    values = np.full(len(columns), np.nan, np.float16)
    [column], [known] = predictions.columns([class_id])
    image_ids = predictions.image_ids
    if known and _are_first(db, predictions, columns):  # the usual case
        values[: len(image_ids)] = predictions.probabilities[:, column]
    elif known:
        rows, in_project = positions(image_ids, columns.image_ids)
        values[rows[in_project]] = predictions.probabilities[:, column][in_project]
    bits = np.abs(values, out=values).view(np.uint16)
    return np.minimum(bits, NO_VALUE, out=bits)  # the bits of nan are larger


def _are_first(db: Database, predictions: Predictions, columns: ImageColumns) -> bool:
    """Return whether the rows of the run are the first rows of the columns."""
    ids = predictions.image_ids
    key = (predictions.run.id, columns.stamp.image)
    return db.caches.get("gallery runs", key, lambda: np.array_equal(ids, columns.image_ids[: len(ids)]), 1)


def _probabilities(db: Database, ids: list[int], class_id: int | None) -> dict[int, float]:
    predictions = read_predictions(db)
    if predictions is None or class_id is None:
        return {}
    values = predictions.aligned(predictions.probabilities, ids, [class_id])[:, 0].tolist()
    return {image_id: round(value, 4) for image_id, value in zip(ids, values, strict=True) if value == value}


def _likeness(db: Database, ids: list[int], sorting: Sorting) -> dict[int, str]:
    """Return how much images are like the examples, in percent; {} of words, where no number means the same twice."""
    if sorting.example and similar.is_of_words(db, sorting.example):
        return {}
    values: list[float] = similar.similarities(db, np.array(ids, np.int64), sorting.like, sorting.example).tolist()
    return {
        image_id: facts.percent(max(value, 0)) for image_id, value in zip(ids, values, strict=True) if value == value
    }


def _measures(db: Database, ids: list[int], sorting: Sorting) -> dict[int, str]:
    """Return the values of the fact that is sorted by, in words, by image; {} where it is no fact."""
    if sorting.by != BY_COLUMN and sorting.by not in facts.BY_NAME:
        return {}
    with up_to_date(db) as columns:
        fact = _fact_of(db, columns, sorting)
        assert fact is not None
        words = facts.words_of(fact, fact.read(db, columns), positions(ids, columns.image_ids)[0])
    return {image_id: value for image_id, value in zip(ids, words, strict=True) if value}

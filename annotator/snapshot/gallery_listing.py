"""Gallery listings: the ordered images of a filter, with their tiles.

A page that scrolls sends its listing's `version`, so no decision moves or hides an image on screen. Only tile contents
are reread. An uncached version is built anew. `changed` marks an outdated listing.
"""

import threading
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

import numpy as np

from annotator.errors import AnnotatorError
from annotator.indexing import find_positions
from annotator.snapshot import image_facts
from annotator.snapshot.filters import FILTERS, MAX_CHOICES, GalleryFilter
from annotator.snapshot.image_facts import Fact, FactValues
from annotator.snapshot.listed_rows import RowsByValue, SortedRows
from annotator.snapshot.run_predictions import Predictions, read_predictions
from annotator.snapshot.similarity import image_similarity
from annotator.snapshot.sorts import COLUMN_SORT, SORTS_BY_NAME
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.gallery import attribute_columns, image_columns, tiles
from annotator.store.gallery.image_columns import ImageColumns
from annotator.store.gallery.values import CategoryColumn
from annotator.store.images import attributes
from annotator.store.people import blindness
from annotator.store.runs import runs

MAX_CACHED_LISTINGS = 32  # 4 bytes an image each, 6 of those by probability ...
MAX_CACHED_LISTING_BYTES = 64_000_000  # ... but no more than these together
MAX_SELECTED_IDS = 5000
SPARSE_MASK_FACTOR = 16  # a mask with fewer than one image in this many counts as few
MAX_FLOAT16_BITS = 0x7C00  # of a float16 from 0 on; the bits sort as the numbers do
NO_VALUE_BITS = MAX_FLOAT16_BITS + 1
MAX_CACHED_COLUMNS = 8  # probabilities of a class: 2 bytes an image each
MAX_CACHED_ORDERS = 4  # by facts that are not kept in half precision: 4 bytes an image each


@dataclass(frozen=True)
class Sorting:
    """The order of a listing, in which equal values are sorted by name."""

    # name in sorts.SORTS
    by: str = "name"
    # images without a value come last either way
    descending: bool = False
    class_id: int | None = None
    # ids of example images, to sort by similarity
    like: tuple[int, ...] = ()
    # Id of an external example (uploaded image, image region or text) instead
    example: str = ""
    # imported field if `by` is "column"
    column: str = ""


@dataclass(frozen=True, eq=False)
class Listing:
    """The ordered images of a filter, as of one version. `rows` index `image_ids`."""

    version: str
    image_ids: np.ndarray
    rows: SortedRows

    def get_ids(self, start: int, count: int) -> list[int]:
        """Return at most `count` image ids from position `start`."""
        return self.image_ids[self.rows.get_rows(start, start + count)].tolist()

    def find_place(self, image_id: int) -> int | None:
        """Return the position of an image, or None if it is not in the listing."""
        [row], [known] = find_positions([image_id], self.image_ids)
        return self.rows.find_place(int(row)) if known else None


@dataclass(frozen=True)
class ListingWindow:
    """A result record: consecutive images of a listing from position `start`.

    `probabilities` and `measures` are the values of the order, by image id.
    """

    total: int
    start: int
    version: str
    changed: bool
    images: list[tiles.Tile]
    probabilities: dict[int, float]
    measures: dict[int, str]


class _ListingCache:
    """The recent listings, by filter, order and version."""

    def __init__(self):
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[GalleryFilter, Sorting, str], Listing] = OrderedDict()

    def get(self, filter_: GalleryFilter, sorting: Sorting, version: str) -> Listing | None:
        with self._lock:
            key = (filter_, sorting, version)
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def add(self, filter_: GalleryFilter, sorting: Sorting, listing: Listing) -> None:
        with self._lock:
            self._kept[filter_, sorting, listing.version] = listing
            size = sum(kept.rows.byte_count for kept in self._kept.values())
            while len(self._kept) > MAX_CACHED_LISTINGS or (size > MAX_CACHED_LISTING_BYTES and len(self._kept) > 1):
                size -= self._kept.popitem(last=False)[1].rows.byte_count


def get_listing(db: Database, filter_: GalleryFilter, sorting: Sorting, version: str = "") -> Listing:
    """Return the ordered images of a filter.

    `version` names the listing on screen, empty for a current one. Raises AnnotatorError for an invalid class or order.
    """
    listings = db.caches.get("gallery", "listings", _ListingCache, 1)
    if version and (kept := listings.get(filter_, sorting, version)):
        return kept
    _check_request(db, filter_, sorting)
    columns = image_columns.get_columns(db)
    with columns.lock, db.reading():
        now = get_current_version(db, filter_, sorting)
        if kept := listings.get(filter_, sorting, now):
            return kept
        columns.refresh(db)
        rows = _sort_rows(db, columns, compute_mask(db, columns, filter_), sorting)
        made = Listing(now, columns.image_ids, rows)
    listings.add(filter_, sorting, made)
    return made


def get_current_version(db: Database, filter_: GalleryFilter, sorting: Sorting) -> str:
    """Return the version of a current listing, computed from everything it depends on."""
    parts: list[float] = [*image_columns.load_stamp(db)]
    if sorting.by == "probability" and (run := runs.load_current_run(db)):
        parts += [run.id, run.version]
    if sorting.by == "like":
        parts += [image_similarity.get_change_key(db)[1]]
    if filter_.uses_imported or SORTS_BY_NAME[sorting.by].imported:
        parts += attributes.get_change_key(db)
    if filter_.blind:
        parts += blindness.get_change_key(db)
    return ".".join(map(str, parts))


def get_window(
    db: Database, filter_: GalleryFilter, sorting: Sorting, start: int, count: int, version: str = ""
) -> ListingWindow:
    """Return a part of a listing (see `get_listing`), with the current contents of its tiles."""
    shown = get_listing(db, filter_, sorting, version)
    ids = shown.get_ids(start, count)
    return ListingWindow(
        len(shown.rows),
        start,
        shown.version,
        shown.version != get_current_version(db, filter_, sorting),
        tiles.read(db, ids),
        _get_probabilities(db, ids, sorting.class_id) if sorting.by == "probability" else {},
        _format_likeness(db, ids, sorting) if sorting.by == "like" else _format_measures(db, ids, sorting),
    )


def list_ids_between(
    db: Database, filter_: GalleryFilter, sorting: Sorting, first: int, last: int, version: str = ""
) -> list[int]:
    """Return the image ids of a listing from position `first` to `last` inclusive.

    Raises AnnotatorError above MAX_SELECTED_IDS.
    """
    if last - first >= MAX_SELECTED_IDS:
        raise AnnotatorError(
            f"At most {MAX_SELECTED_IDS:,} images can be selected at once; these are {last - first + 1:,}."
        )
    return get_listing(db, filter_, sorting, version).get_ids(first, max(0, last - first + 1))


def find_images(db: Database, text: str, count: int) -> list[tuple[int, str]]:
    """Return at most `count` (id, name) of images whose name contains a text, exact and prefix matches first."""
    if not text:
        return []
    with open_columns(db) as columns:
        ids = columns.image_ids[columns.names.find_best_matches(text, count)].tolist()
        return [(tile.image.id, tile.image.name) for tile in tiles.read(db, ids)]


def is_ready(db: Database) -> bool:
    """Return whether the image columns that listings need are in memory."""
    return image_columns.get_columns(db).stamp != image_columns.NOTHING_READ


def load_columns(db: Database) -> None:
    """Read the image columns that listings need into memory, which takes seconds per million images."""
    with open_columns(db):
        pass


@contextmanager
def open_columns(db: Database) -> Generator[ImageColumns]:
    """Yield the current image columns, locked during the `with` block."""
    columns = image_columns.get_columns(db)
    with columns.lock, db.reading():
        columns.refresh(db)
        yield columns


def list_filter_choices(db: Database) -> dict[str, list[tuple[str, str]]]:
    """Return the choices of each filter as (value, displayed text), at most MAX_CHOICES."""
    with open_columns(db) as columns:
        return {one.name: list(one.list_choices(db, columns))[:MAX_CHOICES] for one in FILTERS}


def list_offered_facts(db: Database) -> list[tuple[str, str]]:
    """Return the fields with a known value and the imported fields, as (name, label)."""
    with open_columns(db) as columns:
        return image_facts.list_offered(db, columns)


def _check_request(db: Database, filter_: GalleryFilter, sorting: Sorting) -> None:
    if sorting.by not in SORTS_BY_NAME:
        raise AnnotatorError(f"There is no order {sorting.by!r}. There is: {', '.join(SORTS_BY_NAME)}.")
    named = filter_.class_ids
    if sorting.by == "probability":
        if sorting.class_id is None:
            raise AnnotatorError("To sort by probability, name a class.")
        named.add(sorting.class_id)
    if sorting.by == "like" and not (sorting.like or sorting.example):
        raise AnnotatorError("To sort by likeness, name the image that all are compared with.")
    if sorting.by == COLUMN_SORT and not sorting.column:
        raise AnnotatorError("To sort by an imported column, name it.")
    if unknown := sorted(named - {class_.id for class_ in classes.load_active_classes(db)}):
        raise AnnotatorError(
            f"There is no class {', '.join(map(str, unknown))}. Was it archived, or named by an old page? Reload it."
        )


def compute_mask(db: Database, columns: ImageColumns, filter_: GalleryFilter) -> np.ndarray | None:
    """Return which images a filter shows, (N,) bool, or None for all."""
    masks = filter_.compute_masks(db, columns)
    if filter_.blind and (hidden := blindness.find_all_hidden_images(db, filter_.blind)):
        masks.append(~np.isin(columns.image_ids, list(hidden)))
    return reduce(np.logical_and, masks) if masks else None


def _sort_rows(db: Database, columns: ImageColumns, mask: np.ndarray | None, sorting: Sorting) -> SortedRows:
    by_name, rank = columns.names.order, columns.names.rank
    fact = _find_sort_fact(db, columns, sorting)
    values = fact.read_values(db, columns) if fact else None
    if sorting.by == "decided":
        order, has_value = columns.get_decision_order(), columns.newest > 0
    elif sorting.by == "twins":
        order, has_value = columns.twins.order, columns.twins.has
    elif fact and values is not None and not _is_half_precision(values):
        order, has_value = _get_fact_order(db, columns, fact, values), image_facts.get_known_mask(values)
    else:
        rows = _select_rows(mask, by_name, rank)
        if sorting.by == "name":
            return SortedRows(rows[::-1] if sorting.descending else rows)
        return _order_by_value(rows, _get_sort_values(db, columns, sorting)[rows], sorting.descending)
    rows = _select_rows(mask, order)
    without = _select_rows(~has_value if mask is None else mask & ~has_value, by_name, rank)
    return SortedRows(np.concatenate([rows[::-1] if sorting.descending else rows, without]))


def _find_sort_fact(db: Database, columns: ImageColumns, sorting: Sorting) -> Fact | None:
    if sorting.by == COLUMN_SORT:
        return image_facts.find(db, columns, f"{image_facts.COLUMN_PREFIX}{sorting.column}")
    return image_facts.FACTS_BY_NAME.get(sorting.by)


def _is_half_precision(values: FactValues) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == np.float16


def _get_fact_order(db: Database, columns: ImageColumns, fact: Fact, values: FactValues) -> np.ndarray:
    """Return the rows of the images with a value, (n,) int32, by value and then name."""
    if values is columns.capture_times:
        return columns.get_capture_order()

    def sort() -> np.ndarray:
        rows = columns.names.order[image_facts.get_known_mask(values)[columns.names.order]]
        keys = values.codes if isinstance(values, CategoryColumn) else values
        return rows[np.argsort(keys[rows], kind="stable")]

    key = (fact.name, columns.stamp.change, *attribute_columns.get_change_key(db, columns))
    return db.caches.get("orders by facts", key, sort, MAX_CACHED_ORDERS)


def _select_rows(mask: np.ndarray | None, order: np.ndarray, rank: np.ndarray | None = None) -> np.ndarray:
    """Return the rows in `mask`, in `order`. For sparse masks, sorting their `rank` is faster."""
    if mask is None:
        return order
    if rank is not None and np.count_nonzero(mask) * SPARSE_MASK_FACTOR < len(mask):
        rows = np.flatnonzero(mask).astype(np.int32)
        return rows[np.argsort(rank[rows])]
    return np.compress(mask[order], order)


def _order_by_value(rows: np.ndarray, values: np.ndarray, descending: bool) -> RowsByValue:
    """Return the rows, given in name order, sorted by value, with rows without a value last."""
    if not descending:
        return RowsByValue(rows, values)
    has_value = values != NO_VALUE_BITS
    if has_value.all():
        return RowsByValue(rows[::-1], MAX_FLOAT16_BITS - values[::-1])
    falling = [MAX_FLOAT16_BITS - values[has_value][::-1], values[~has_value]]
    return RowsByValue(np.concatenate([rows[has_value][::-1], rows[~has_value]]), np.concatenate(falling))


def _get_sort_values(db: Database, columns: ImageColumns, sorting: Sorting) -> np.ndarray:
    if fact := image_facts.FACTS_BY_NAME.get(sorting.by):
        return np.minimum(fact.read_numbers(db, columns).view(np.uint16), NO_VALUE_BITS)  # the bits of nan are larger
    if sorting.by == "like":
        distances = 1 - image_similarity.compute_similarities(db, columns.image_ids, sorting.like, sorting.example)
        return np.minimum(distances.astype(np.float16).view(np.uint16), NO_VALUE_BITS)
    if sorting.by == "labels":
        return columns.positives.view(np.uint16)
    return _get_probability_bits(db, columns, sorting.class_id or 0)


def _get_probability_bits(db: Database, columns: ImageColumns, class_id: int) -> np.ndarray:
    """Return the bits of a class's float16 probabilities, (N,) uint16, NO_VALUE_BITS if unknown."""
    predictions = read_predictions(db)
    if predictions is None:
        return np.full(len(columns), NO_VALUE_BITS, np.uint16)
    stamp = columns.stamp
    key = (predictions.run.id, predictions.run.version, class_id, stamp.image)
    return db.caches.get(
        "gallery probabilities",
        key,
        lambda: _read_probability_bits(db, predictions, columns, class_id),
        MAX_CACHED_COLUMNS,
    )


def _read_probability_bits(db: Database, predictions: Predictions, columns: ImageColumns, class_id: int) -> np.ndarray:
    values = np.full(len(columns), np.nan, np.float16)
    [column], [known] = predictions.find_columns([class_id])
    image_ids = predictions.image_ids
    if known and _are_first_rows(db, predictions, columns):  # the usual case
        values[: len(image_ids)] = predictions.probabilities[:, column]
    elif known:
        rows, in_project = find_positions(image_ids, columns.image_ids)
        values[rows[in_project]] = predictions.probabilities[:, column][in_project]
    bits = np.abs(values, out=values).view(np.uint16)
    return np.minimum(bits, NO_VALUE_BITS, out=bits)  # the bits of nan are larger


def _are_first_rows(db: Database, predictions: Predictions, columns: ImageColumns) -> bool:
    ids = predictions.image_ids
    key = (predictions.run.id, columns.stamp.image)
    return db.caches.get("gallery runs", key, lambda: np.array_equal(ids, columns.image_ids[: len(ids)]), 1)


def _get_probabilities(db: Database, ids: list[int], class_id: int | None) -> dict[int, float]:
    predictions = read_predictions(db)
    if predictions is None or class_id is None:
        return {}
    values = predictions.align(predictions.probabilities, ids, [class_id])[:, 0].tolist()
    return {image_id: round(value, 4) for image_id, value in zip(ids, values, strict=True) if value == value}


def _format_likeness(db: Database, ids: list[int], sorting: Sorting) -> dict[int, str]:
    if sorting.example and image_similarity.is_text_example(db, sorting.example):
        return {}
    values: list[float] = image_similarity.compute_similarities(
        db, np.array(ids, np.int64), sorting.like, sorting.example
    ).tolist()
    return {
        image_id: image_facts.format_percent(max(value, 0))
        for image_id, value in zip(ids, values, strict=True)
        if value == value
    }


def _format_measures(db: Database, ids: list[int], sorting: Sorting) -> dict[int, str]:
    if sorting.by != COLUMN_SORT and sorting.by not in image_facts.FACTS_BY_NAME:
        return {}
    with open_columns(db) as columns:
        fact = _find_sort_fact(db, columns, sorting)
        assert fact is not None
        words = image_facts.format_rows(fact, fact.read_values(db, columns), find_positions(ids, columns.image_ids)[0])
    return {image_id: value for image_id, value in zip(ids, words, strict=True) if value}

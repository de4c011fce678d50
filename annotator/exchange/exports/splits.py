"""Splits of an export, read from a field or stratified over all classes.

After Sechidis, Tsoumakas, Vlahavas, ECML PKDD 2011, algorithm 1.
"""

from collections import Counter
from typing import Any

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.exports import near_duplicates
from annotator.exchange.exports.choices import SPLIT_BY_SIMILARITY, Choices, find_split_attribute, parse_split_shares
from annotator.exchange.exports.tallies import Tallies
from annotator.exchange.files.safe_names import safe_names
from annotator.humanize import format_count
from annotator.indexing import find_positions
from annotator.progress_callbacks import ProgressCallback
from annotator.store.database.database import Database
from annotator.store.events import membership
from annotator.store.labels import export_reads

MAX_EXISTING_SPLITS = 100  # values of an attribute that names splits; an attribute with more is not about splits


def assign(
    db: Database, choices: Choices, ids: np.ndarray, tallies: Tallies, progress: ProgressCallback
) -> tuple[tuple[str, ...], np.ndarray]:
    """Assign images to splits: return the split names and each image's index, (N,) int16 with -1 for none.

    Both are empty without splits. A field with too many values raises AnnotatorError.

    Args:
        ids: (N,) int64, ascending.
        tallies: Must have positives for new splits.
    """
    if attribute := find_split_attribute(choices.splits):
        return _read_existing_splits(db, attribute, ids)
    wanted = parse_split_shares(choices.splits)
    if not wanted:
        return (), np.zeros(0, np.int16)
    starts, classes = tallies.positives()
    if choices.split_by == SPLIT_BY_SIMILARITY:
        groups = near_duplicates.find_groups(db, ids, progress)
    else:
        groups = _groups(db, choices.split_by, ids)
    if (events := membership.load_event_ids(db, ids)) is not None:
        groups = _merge_groups(membership.number_events(events), groups)
    return tuple(wanted), stratify(starts, classes, list(wanted.values()), choices.seed, groups)


def _merge_groups(first: np.ndarray, second: np.ndarray | None) -> np.ndarray:
    """Merge two groupings (N,), so that images with the same group in either one are in one group."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if second is None or not len(first):
        return first
    many = int(first.max()) + 1
    ones = np.ones(len(first), bool)
    size = many + int(second.max()) + 1
    _, component = connected_components(coo_matrix((ones, (first, many + second)), (size, size)), directed=False)
    return np.unique(component[first], return_inverse=True)[1]


def count_positives(
    names: tuple[str, ...], split_of: np.ndarray, tallies: Tallies, class_names: list[str]
) -> list[dict[str, Any]]:
    """Return name, images and present (images per class) of each split, last "" for images in none."""
    if not names:
        return []
    starts, classes = tallies.positives()
    places = np.where(split_of < 0, len(names), split_of)
    of_cell = np.repeat(places, np.diff(starts)).astype(np.int64)
    size = max(len(class_names), 1)
    shape = len(names) + 1, size
    table = np.bincount(of_cell * size + classes, minlength=shape[0] * shape[1]).reshape(shape).tolist()
    images = np.bincount(places, minlength=len(names) + 1).tolist()
    every = [
        {"name": name, "images": count, "present": dict(zip(class_names, present, strict=False))}
        for name, count, present in zip((*names, ""), images, table, strict=True)
    ]
    return [split for split in every if split["name"] or split["images"]]


def describe_splits(names: tuple[str, ...], split_of: np.ndarray) -> list[str]:
    if not names:
        return []
    counts = Counter(split_of.tolist())
    sentences = [f"Splits: {', '.join(f'{name} {counts[place]:,}' for place, name in enumerate(names))} images."]
    if counts[-1]:
        sentences.append(f"{format_count(counts[-1], 'image is', 'images are')} in no split.")
    return sentences


def stratify(
    starts: np.ndarray, classes: np.ndarray, wanted: list[float], seed: int, groups: np.ndarray | None = None
) -> np.ndarray:
    """Assign each image to a split so that all splits have similar class shares. Returns split indices, (N,) int16.

    Args:
        starts: (N + 1,) offsets into `classes`.
        classes: Present classes, image by image.
        wanted: Share of each split, sum 1.
        groups: (N,) int64 group of each image. A group stays in one split.
    """
    images = len(starts) - 1
    if groups is None:
        groups = np.arange(images)
    members = int(groups.max()) + 1 if images else 0
    image_of = np.repeat(np.arange(images), np.diff(starts))
    width = int(classes.max()) + 1 if len(classes) else 0
    # Positives of a group: its classes, each with the number of its images that show the class.
    cells, many = np.unique(groups[image_of].astype(np.int64) * max(width, 1) + classes, return_counts=True)
    of_group, of_class = np.divmod(cells, max(width, 1))
    first = np.searchsorted(of_group, np.arange(members + 1)).tolist()
    sizes = np.bincount(groups, minlength=members)
    rng = np.random.default_rng(seed)
    # Large groups first, so that small ones can even out the splits. Groups of equal size are in random order.
    rank = np.empty(members, np.int64)
    rank[np.lexsort((rng.random(members), -sizes))] = np.arange(members)
    by_class = np.lexsort((rank[of_group], of_class))
    bounds = np.searchsorted(of_class[by_class], np.arange(width + 1))
    ordered = of_group[by_class]
    fill = _SplitQuotas(
        wanted, np.bincount(of_class, many, minlength=width), images, rng.random((members, len(wanted)))
    )
    split = [-1] * members
    class_list, many_list, size_list = of_class.tolist(), many.tolist(), sizes.tolist()
    left = np.bincount(of_class, many, minlength=width)
    while width and left.max() > 0:
        rarest = int(np.where(left > 0, left, np.inf).argmin())
        for group in ordered[bounds[rarest] : bounds[rarest + 1]].tolist():
            if split[group] < 0:
                positives = range(first[group], first[group + 1])
                cells_ = [(class_list[place], many_list[place]) for place in positives]
                split[group] = fill.assign_group(group, rarest, cells_, size_list[group])
                for class_, count in cells_:
                    left[class_] -= count
        left[rarest] = 0
    for group in np.argsort(rank).tolist():
        if split[group] < 0:
            split[group] = fill.assign_group(group, None, [], size_list[group])
    return np.array(split, np.int16)[groups] if images else np.zeros(0, np.int16)


class _SplitQuotas:
    """A counter of the images, and of positives per class, that each split still needs."""

    def __init__(self, wanted: list[float], positives: np.ndarray, images: int, ties: np.ndarray):
        self._of_class = [[share * count for share in wanted] for count in positives.tolist()]
        self._images = [share * images for share in wanted]
        self._ties = ties

    def assign_group(self, group: int, class_: int | None, cells: list[tuple[int, int]], size: int) -> int:
        """Assign a group to the split that lacks most positives of a class, then most images, and return it."""
        ties, images = self._ties[group], self._images
        wants = images if class_ is None else self._of_class[class_]
        split = max(range(len(images)), key=lambda place: (wants[place], images[place], ties[place]))
        images[split] -= size
        for other, count in cells:
            self._of_class[other][split] -= count
        return split


def _read_existing_splits(db: Database, attribute: str, ids: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    image_ids, values = export_reads.load_attribute_values(db, attribute)
    words = sorted(set(values))
    if len(words) > MAX_EXISTING_SPLITS:
        raise AnnotatorError(
            f"The attribute {attribute!r} has {len(words):,} different values, such as {words[0]!r}; at most "
            f"{MAX_EXISTING_SPLITS} can be splits. To keep images of one value together: --split-by {attribute}"
        )
    place_of = {word: place for place, word in enumerate(words)}
    rows, known = find_positions(ids, image_ids)
    of_value = np.array([place_of[value] for value in values], np.int16)
    split_of = np.full(len(ids), -1, np.int16)
    split_of[known] = of_value[rows[known]]
    return tuple(safe_names(words)), split_of  # formats use these names for folders


def _groups(db: Database, split_by: str, ids: np.ndarray) -> np.ndarray | None:
    """Return each image's group, (N,) from 0, or None without `split_by`. An image without a value is alone."""
    if not split_by:
        return None
    number_of: dict[object, int] = {}
    if split_by == "folder":
        names: list[object] = []
        for start in range(0, len(ids), 10_000):
            names += export_reads.load_folder_names(db, ids[start : start + 10_000])
    else:
        image_ids, values = export_reads.load_attribute_values(db, split_by)
        of_image = dict(zip(image_ids.tolist(), values, strict=True))
        names = [of_image.get(image_id, image_id) for image_id in ids.tolist()]
    return np.array([number_of.setdefault(name, len(number_of)) for name in names], np.int64)

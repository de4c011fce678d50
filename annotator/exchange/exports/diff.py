"""Comparison of two exports by image and class ids, so renamed classes stay the same."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotator.exchange.formats.export_view import STATE_WORDS
from annotator.humanize import format_count
from annotator.indexing import find_positions
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels.tagged_exports import TaggedCells

MAX_EXAMPLES = 3  # image names shown for each kind of change
IMAGES_PER_BATCH = 4096
STATE_NAMES = tuple(word or "unknown" for word in STATE_WORDS)

Change = tuple[int, int, int, int]
"""Image id, class id, and the places in STATE_NAMES of its state before and after."""


@dataclass(frozen=True)
class ClassChange:
    """The number of a class's labels that changed from one state to another, with example images."""

    name: str
    before: str
    after: str
    pairs: int
    examples: list[str]


@dataclass(frozen=True)
class Diff:
    """The differences between two exports. `renamed` has (old, new) class names."""

    images_added: int
    images_removed: int
    images_in_both: int
    images_changed: int
    classes_added: list[str]
    classes_removed: list[str]
    renamed: list[tuple[str, str]]
    changes: list[ClassChange]

    def as_json(self) -> dict[str, Any]:
        facts = {**vars(self), "changes": [vars(change) for change in self.changes]}
        return facts | {"pairs_changed": sum(change.pairs for change in self.changes)}

    def sentences(self) -> list[str]:
        pairs = sum(change.pairs for change in self.changes)
        sentences = [
            f"Images: {self.images_added:,} added, {self.images_removed:,} removed, {self.images_in_both:,} in both.",
            f"{format_count(pairs, 'pair')} of {format_count(self.images_changed, 'image')} changed.",
        ]
        for what, names in (("added", self.classes_added), ("removed", self.classes_removed)):
            if names:
                sentences.append(f"{format_count(len(names), 'class', 'classes')} {what}: {', '.join(names)}.")
        sentences += [f"Class {before!r} is called {after!r} now." for before, after in self.renamed]
        for change in self.changes:
            such = f" (such as {', '.join(change.examples)})"
            sentences.append(f"  {change.name}: {change.before} -> {change.after}: {change.pairs:,}{such}")
        return sentences


def compare_exports(
    db: Database, before: TaggedCells, after: TaggedCells, on_change: Callable[[str, str, str, str], None] | None = None
) -> Diff:
    """Return the differences between two exports of one project.

    `on_change` receives (image, class, before, after) per changed label, image by image.
    """
    old, new = dict(before.classes), dict(after.classes)
    shared = [class_id for class_id in new if class_id in old]
    in_both = np.intersect1d(before.image_ids, after.image_ids, assume_unique=True)
    pairs: Counter[tuple[int, int, int]] = Counter()
    examples: dict[tuple[int, int, int], list[int]] = {}
    changed = 0
    for changes in _find_changes(before, after, in_both, shared):
        names = _load_image_names(db, changes) if on_change else {}
        changed += len({image_id for image_id, *_ in changes})
        for image_id, *kind_ in changes:
            kind = (kind_[0], kind_[1], kind_[2])
            pairs[kind] += 1
            if pairs[kind] <= MAX_EXAMPLES:
                examples.setdefault(kind, []).append(image_id)
            if on_change:
                on_change(names[image_id], new[kind[0]], STATE_NAMES[kind[1]], STATE_NAMES[kind[2]])
    shown = _load_image_names(db, [(image_id, 0, 0, 0) for ids in examples.values() for image_id in ids])
    return Diff(
        images_added=len(after.image_ids) - len(in_both),
        images_removed=len(before.image_ids) - len(in_both),
        images_in_both=len(in_both),
        images_changed=changed,
        classes_added=[name for class_id, name in new.items() if class_id not in old],
        classes_removed=[name for class_id, name in old.items() if class_id not in new],
        renamed=[(old[class_id], new[class_id]) for class_id in shared if old[class_id] != new[class_id]],
        changes=[
            ClassChange(
                new[kind[0]],
                STATE_NAMES[kind[1]],
                STATE_NAMES[kind[2]],
                count,
                [shown[image_id] for image_id in examples[kind]],
            )
            for kind, count in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
        ],
    )


def _find_changes(
    before: TaggedCells, after: TaggedCells, in_both: np.ndarray, shared: Sequence[int]
) -> Iterator[list[Change]]:
    columns = [
        [place for class_id in shared for place, (other, _) in enumerate(cells.classes) if other == class_id]
        for cells in (before, after)
    ]
    for start in range(0, len(in_both), IMAGES_PER_BATCH):
        ids = in_both[start : start + IMAGES_PER_BATCH]
        old, new = (
            cells.states[find_positions(ids, cells.image_ids)[0]][:, chosen]
            for cells, chosen in zip((before, after), columns, strict=True)
        )
        rows, places = np.nonzero(old != new)
        states = zip(old[rows, places].tolist(), new[rows, places].tolist(), strict=True)
        cells = zip(ids[rows].tolist(), places.tolist(), states, strict=True)
        yield [(image_id, shared[place], *states_) for image_id, place, states_ in cells]


def _load_image_names(db: Database, changes: Sequence[Change]) -> dict[int, str]:
    ids = sorted({image_id for image_id, *_ in changes})
    names: dict[int, str] = {}
    for start in range(0, len(ids), 10_000):
        names |= {key: image.name for key, image in images.load_images(db, ids[start : start + 10_000]).items()}
    return names

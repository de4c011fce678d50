"""Assignments of images or classes to annotators, which other annotators do not get.

Image assignments (folder or list) limit an annotator to these images. Others get the unassigned ones. Class assignments
do the same for single-class questions.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import sqlite_utils

from annotator.errors import AnnotatorError, did_you_mean
from annotator.roles import Right
from annotator.store.database.database import Database, get_inserted_id
from annotator.store.images import image_lists
from annotator.store.labels import blind_visibility, image_overlap
from annotator.store.people import members, reference_answers

FOLDER, IMAGES, CLASS = "folder", "images", "class"
MAX_CACHED_PEOPLE = 64  # people whose images are kept in memory, a byte for each image of the project
MAX_ASSIGNMENTS = 10_000  # shares of a project


@dataclass(frozen=True)
class Assignment:
    """Work assigned to an annotator."""

    id: int
    annotator: str
    # FOLDER, IMAGES or CLASS
    kind: str
    # name of the folder, list or class
    what: str
    # assigned images, 0 for a class
    images: int
    # complete images among them
    answered: int


class WithheldImages:
    """The images that an annotator must not get: they wait for blind answers or are assigned to others.

    Attributes:
        own: Ids assigned to the annotator, (n,) int64, or None without an image assignment.
        holds_untouched: Whether all unanswered images wait for blind answers.
    """

    def __init__(self, mask: np.ndarray, own: np.ndarray | None, *, holds_untouched: bool = False):
        self.own, self.holds_untouched = own, holds_untouched
        self._mask = mask
        self._count = int(mask.sum())
        self._single: Collection[int] = ()

    def with_single(self, image_ids: Collection[int]) -> "WithheldImages":
        """Return a copy that withholds these images, too."""
        if not image_ids:
            return self
        more = copy(self)
        more._single = image_ids
        return more

    def __contains__(self, image_id: object) -> bool:
        if not isinstance(image_id, int):
            return False
        return image_id in self._single or (image_id < len(self._mask) and bool(self._mask[image_id]))

    def __len__(self) -> int:
        return self._count + len(self._single)

    def get_mask(self, image_ids: np.ndarray) -> np.ndarray:
        """Return which `image_ids` are withheld: (n,) bool."""
        known = image_ids < len(self._mask)
        aside = self._mask[np.where(known, image_ids, 0)] & known
        return aside | np.isin(image_ids, list(self._single)) if self._single else aside


NOTHING_WITHHELD = WithheldImages(np.zeros(1, bool), None)


class UnavailableImages(Collection[int]):
    """The images that cannot be given out now: those withheld from an annotator, and `ids`, which callers extend."""

    def __init__(self, ids: set[int], aside: WithheldImages):
        self.ids, self.aside = ids, aside

    def __contains__(self, image_id: object) -> bool:
        return image_id in self.ids or image_id in self.aside

    def __len__(self) -> int:
        return len(self.ids) + len(self.aside)

    def __iter__(self) -> Iterator[int]:
        raise TypeError("what is set aside is asked about image by image; it may be most of a project")

    def get_mask(self, image_ids: np.ndarray) -> np.ndarray:
        """Return which `image_ids` are unavailable: (n,) bool."""
        return self.aside.get_mask(image_ids) | np.isin(image_ids, list(self.ids))


def load_withheld_images(db: Database, annotator: str) -> WithheldImages:
    """Return the images withheld from this annotator.

    Includes unseen reference images if the member may not see blind answers.
    """
    stamp = db.tuples(
        """SELECT (SELECT max(id) FROM assignment), (SELECT count(*) FROM assignment), (SELECT max(id) FROM image),
        (SELECT max(id) FROM file), n FROM reading_version"""
    )[0]
    has_shares = bool(stamp[1])
    key = (annotator if has_shares else "", *stamp)
    kept = db.caches.get(
        "set_aside", key, lambda: _compute_withheld(db, annotator, has_shares), MAX_CACHED_PEOPLE if has_shares else 2
    )
    return (
        kept
        if blind_visibility.can_see_all(db)
        else kept.with_single(reference_answers.find_hidden_images(db, annotator))
    )


def load_withheld_classes(db: Database, annotator: str) -> set[int]:
    """Return classes withheld from this annotator's single-class questions."""
    rows = db.tuples("SELECT CAST(what AS INTEGER), annotator FROM assignment WHERE kind = ?", [CLASS])
    own = {class_id for class_id, name in rows if name == annotator}
    if own:
        return {class_id for (class_id,) in db.tuples("SELECT id FROM class")} - own
    return {class_id for class_id, _ in rows}


def has_withheld_images(db: Database, annotator: str) -> bool:
    return len(load_withheld_images(db, annotator)) > 0


def has_assigned_classes(db: Database, annotator: str) -> bool:
    """Return whether this annotator has assigned classes, and so never gets whole images."""
    statement = "SELECT EXISTS (SELECT 1 FROM assignment WHERE kind = ? AND annotator = ?)"
    return bool(db.value(statement, [CLASS, annotator]))


def load_assignments(db: Database) -> list[Assignment]:
    """Return all assignments in creation order. Too slow for frequent requests."""
    complete = np.sort(db.integer_rows("SELECT id FROM image WHERE stage = 3")[:, 0])
    names = dict(db.tuples("SELECT id, name FROM class"))
    found: list[Assignment] = []
    for id_, annotator, kind, what in _load_assignment_rows(db):
        ids = _load_image_ids(db, id_, kind, what)
        shown = names.get(int(what), what) if kind == CLASS else what
        found.append(Assignment(id_, annotator, kind, shown, len(ids), int(np.isin(ids, complete).sum())))
    return found


def assign_folder(db: Database, annotator: str, folder: str) -> int:
    """Assign a folder, including future images, and return the assignment id.

    Args:
        folder: Path below the added folder, "" for all images.

    Raises:
        AnnotatorError: No images, or unknown annotator.
    """
    wanted = folder.strip().strip("/")
    if not len(_load_folder_image_ids(db, wanted)):
        paths = db.tuples("SELECT DISTINCT substr(path, 1, instr(path, '/') - 1) FROM file WHERE instr(path, '/') > 0")
        known = sorted(path for (path,) in paths)
        hint = did_you_mean(wanted, known, max_listed=5) if known else "The images of this project lie in no folders."
        raise AnnotatorError(f"No image lies in a folder {wanted!r}. {hint}")
    return _add_assignment(db, annotator, FOLDER, wanted)


def assign_class(db: Database, annotator: str, class_id: int) -> int:
    """Assign a class and return the assignment id. Raises AnnotatorError for an unknown class or annotator."""
    if not db.value("SELECT count(*) FROM class WHERE id = ? AND archived = 0", [class_id]):
        raise AnnotatorError(f"There is no class {class_id} in this project.")
    return _add_assignment(db, annotator, CLASS, str(class_id))


def assign_images(db: Database, annotator: str, list_name: str, names: Sequence[str]) -> int:
    """Assign a list of images and return the assignment id.

    Raises:
        AnnotatorError: The list is empty, or names unknown images or an unknown annotator.
    """
    return _add_assignment(db, annotator, IMAGES, list_name, image_lists.resolve_image_names(db, names))


def remove_assignment(db: Database, share_id: int) -> None:
    """Delete an assignment. Raises AnnotatorError if unknown."""
    with db.writing() as sql:
        if not sql.execute("SELECT 1 FROM assignment WHERE id = ?", [share_id]).fetchone():
            raise AnnotatorError(f"There is no share {share_id}; somebody may have taken it back already.")
        sql.execute("DELETE FROM assigned_image WHERE assignment_id = ?", [share_id])
        sql.execute("DELETE FROM assignment WHERE id = ?", [share_id])


def _add_assignment(db: Database, annotator: str, kind: str, what: str, image_ids: Sequence[int] = ()) -> int:
    name = annotator.strip()
    if not name:
        raise AnnotatorError("A share needs the name of the person whose it is.")
    # Nobody would be asked about images assigned to a person who is no member.
    if any(member.role.highest_right >= Right.OWN for member in members.load_members(db)):
        members.find_member(db, name)
    with db.writing() as sql:
        if sql.execute("SELECT count(*) FROM assignment").fetchone()[0] >= MAX_ASSIGNMENTS:
            raise AnnotatorError(f"A project can have {MAX_ASSIGNMENTS:,} shares.")
        if kind != IMAGES:
            statement = "SELECT id FROM assignment WHERE annotator = ? AND kind = ? AND what = ?"
            if known := sql.execute(statement, [name, kind, what]).fetchone():
                return known[0]
        statement = "INSERT INTO assignment (annotator, kind, what, given_at) VALUES (?, ?, ?, ?)"
        share_id = get_inserted_id(sql.execute(statement, [name, kind, what, time.time()]))
        _add_images(sql, share_id, image_ids)
    return share_id


def _add_images(sql: sqlite_utils.Database, share_id: int, image_ids: Sequence[int]) -> None:
    sql.conn.executemany(
        "INSERT OR IGNORE INTO assigned_image (assignment_id, image_id) VALUES (?, ?)",
        [(share_id, image_id) for image_id in image_ids],
    )


def _compute_withheld(db: Database, annotator: str, has_shares: bool) -> WithheldImages:
    with db.reading():
        mask = np.zeros((db.value("SELECT max(id) FROM image") or 0) + 1, bool)
        own: np.ndarray | None = None
        if has_shares:
            mine = np.zeros(len(mask), bool)
            for id_, name, kind, what in _load_assignment_rows(db):
                if kind == CLASS:
                    continue
                ids = _load_image_ids(db, id_, kind, what)
                mask[ids] = True
                mine[ids] |= name == annotator
                if name == annotator:
                    own = np.flatnonzero(mine)
            mask = ~mine if own is not None else mask
        mask[image_overlap.load_waiting_image_ids(db)] = True
        overlap = image_overlap.load_overlap(db)
        # With a smaller share, queues find an untouched image at once, so the check does not pay.
        holds_untouched = overlap is not None and overlap.share == 1 and not image_overlap.leaves_untouched_images(db)
    return WithheldImages(mask, own, holds_untouched=holds_untouched)


def _load_assignment_rows(db: Database) -> list[tuple[int, str, str, str]]:
    return db.tuples("SELECT id, annotator, kind, what FROM assignment ORDER BY id")


def _load_image_ids(db: Database, share_id: int, kind: str, what: str) -> np.ndarray:
    if kind == FOLDER:
        return _load_folder_image_ids(db, what)
    return db.integer_rows("SELECT image_id FROM assigned_image WHERE assignment_id = ?", [share_id])[:, 0]


def _load_folder_image_ids(db: Database, folder: str) -> np.ndarray:
    inside = f"{folder}/" if folder else ""
    return db.integer_rows(
        "SELECT DISTINCT image_id FROM file WHERE image_id NOT NULL AND substr(path, 1, ?) = ?", [len(inside), inside]
    )[:, 0]

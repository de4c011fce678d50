"""Fixed shares: images or classes that belong to some people and are asked of nobody else.

A share of images is a folder or a list. Whoever has one is given only its images; whoever has none is given the images
that belong to nobody. A share of classes is a class: whoever has one is asked about their classes only, one class at a
time, and nobody else is asked about these classes that way. Two people may have the same share: then it is a pool of
their own. Nothing that was answered before changes, and what is in hand stays there until it is answered.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import sqlite_utils

from annotator.errors import AnnotatorError, did_you_mean
from annotator.roles import Right
from annotator.store.database.database import Database, new_id
from annotator.store.images import lists as image_lists
from annotator.store.labels import blind_tallies as apart
from annotator.store.labels import overlap as readings
from annotator.store.people import known_answers, members

FOLDER, IMAGES, CLASS = "folder", "images", "class"
KEPT = 64  # people whose images are kept in memory, a byte for each image of the project
MOST = 10_000  # shares of a project


@dataclass(frozen=True)
class Share:
    """One share. kind: FOLDER, IMAGES, CLASS; what: the folder, what the list is called, or the name of the class;
    images: how many it has (0 of a class), answered: how many of them are complete."""

    id: int
    annotator: str
    kind: str
    what: str
    images: int
    answered: int


class Aside:
    """The images that a person is not given, whatever is free: those that wait for blind answers, and those of others.

    Attributes:
        own: Ids of the images that are this person's share, (n,) int64; None for somebody without one.
        holds_untouched: Whether all images without an answer wait for blind ones, so that nobody need look for another.
    """

    def __init__(self, mask: np.ndarray, own: np.ndarray | None, *, holds_untouched: bool = False):
        self.own, self.holds_untouched = own, holds_untouched
        self._mask = mask
        self._count = int(mask.sum())
        self._single: Collection[int] = ()

    def and_single(self, image_ids: Collection[int]) -> "Aside":
        """The same with a few images more."""
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

    def among(self, image_ids: np.ndarray) -> np.ndarray:
        """Which of these images they are: (n,) bool."""
        known = image_ids < len(self._mask)
        aside = self._mask[np.where(known, image_ids, 0)] & known
        return aside | np.isin(image_ids, list(self._single)) if self._single else aside


NOTHING = Aside(np.zeros(1, bool), None)


class Taken(Collection[int]):
    """Images that are not given: single ones, and those set aside.

    Attributes:
        ids: The single ones, which may be added to.
    """

    def __init__(self, ids: set[int], aside: Aside):
        self.ids, self.aside = ids, aside

    def __contains__(self, image_id: object) -> bool:
        return image_id in self.ids or image_id in self.aside

    def __len__(self) -> int:
        return len(self.ids) + len(self.aside)

    def __iter__(self) -> Iterator[int]:
        raise TypeError("what is set aside is asked about image by image; it may be most of a project")

    def among(self, image_ids: np.ndarray) -> np.ndarray:
        """Which of these images they are: (n,) bool."""
        return self.aside.among(image_ids) | np.isin(image_ids, list(self.ids))


def aside(db: Database, annotator: str) -> Aside:
    """The images that this person is not given, among them those with known answers that they may still be asked for,
    if the thread acts for somebody from whom these are hidden. Kept in memory until shares, blind answers or images
    change."""
    stamp = db.tuples(
        """SELECT (SELECT max(id) FROM assignment), (SELECT count(*) FROM assignment), (SELECT max(id) FROM image),
        (SELECT max(id) FROM file), n FROM reading_version"""
    )[0]
    has_shares = bool(stamp[1])
    key = (annotator if has_shares else "", *stamp)
    kept = db.caches.get("set_aside", key, lambda: _aside(db, annotator, has_shares), KEPT if has_shares else 2)
    return kept if apart.sees_all(db) else kept.and_single(known_answers.hidden(db, annotator))


def classes_away(db: Database, annotator: str) -> set[int]:
    """The classes that this person is not asked about one at a time."""
    rows = db.tuples("SELECT CAST(what AS INTEGER), annotator FROM assignment WHERE kind = ?", [CLASS])
    own = {class_id for class_id, name in rows if name == annotator}
    if own:
        return {class_id for (class_id,) in db.tuples("SELECT id FROM class")} - own
    return {class_id for class_id, _ in rows}


def is_limited(db: Database, annotator: str) -> bool:
    """Whether some image that somebody is given is not given to this person."""
    return len(aside(db, annotator)) > 0


def has_classes(db: Database, annotator: str) -> bool:
    """Whether this person is asked about some classes only, and so about no image as a whole."""
    statement = "SELECT EXISTS (SELECT 1 FROM assignment WHERE kind = ? AND annotator = ?)"
    return bool(db.value(statement, [CLASS, annotator]))


def shares(db: Database) -> list[Share]:
    """All shares, in the order in which they were given; counts their images, so no hot page calls it."""
    complete = np.sort(db.numbers("SELECT id FROM image WHERE stage = 3")[:, 0])
    names = dict(db.tuples("SELECT id, name FROM class"))
    found: list[Share] = []
    for id_, annotator, kind, what in _all(db):
        ids = _images_of(db, id_, kind, what)
        shown = names.get(int(what), what) if kind == CLASS else what
        found.append(Share(id_, annotator, kind, shown, len(ids), int(np.isin(ids, complete).sum())))
    return found


def give_folder(db: Database, annotator: str, folder: str) -> int:
    """Make a folder of the images, also of those that are added to it later, somebody's share. Returns its id.

    Args:
        folder: Below the folder that was added to the project; "" for all images.

    Raises:
        AnnotatorError: No image lies there.
    """
    wanted = folder.strip().strip("/")
    if not len(_in_folder(db, wanted)):
        paths = db.tuples("SELECT DISTINCT substr(path, 1, instr(path, '/') - 1) FROM file WHERE instr(path, '/') > 0")
        known = sorted(path for (path,) in paths)
        hint = did_you_mean(wanted, known, shown=5) if known else "The images of this project lie in no folders."
        raise AnnotatorError(f"No image lies in a folder {wanted!r}. {hint}")
    return _give(db, annotator, FOLDER, wanted)


def give_class(db: Database, annotator: str, class_id: int) -> int:
    """Make a class somebody's share. Returns the id of the share. Raises AnnotatorError for an unknown class."""
    if not db.value("SELECT count(*) FROM class WHERE id = ? AND archived = 0", [class_id]):
        raise AnnotatorError(f"There is no class {class_id} in this project.")
    return _give(db, annotator, CLASS, str(class_id))


def give_images(db: Database, annotator: str, called: str, names: Sequence[str]) -> int:
    """Make a list of images somebody's share. Returns its id.

    Args:
        called: What the list is called.
        names: As in image_lists.named.

    Raises:
        AnnotatorError: For an empty list, and naming all that are unknown.
    """
    return _give(db, annotator, IMAGES, called, image_lists.named(db, names))


def take_back(db: Database, share_id: int) -> None:
    """End a share: from now on its images or its class belong to whoever else has them, or to everybody. Raises
    AnnotatorError for an unknown one."""
    with db.writing() as sql:
        if not sql.execute("SELECT 1 FROM assignment WHERE id = ?", [share_id]).fetchone():
            raise AnnotatorError(f"There is no share {share_id}; somebody may have taken it back already.")
        sql.execute("DELETE FROM assigned_image WHERE assignment_id = ?", [share_id])
        sql.execute("DELETE FROM assignment WHERE id = ?", [share_id])


def _give(db: Database, annotator: str, kind: str, what: str, image_ids: Sequence[int] = ()) -> int:
    name = annotator.strip()
    if not name:
        raise AnnotatorError("A share needs the name of the person whose it is.")
    # Images that belong to nobody who exists would be asked of nobody.
    if any(member.role.right >= Right.OWN for member in members.members(db)):
        members.member_named(db, name)
    with db.writing() as sql:
        if sql.execute("SELECT count(*) FROM assignment").fetchone()[0] >= MOST:
            raise AnnotatorError(f"A project can have {MOST:,} shares.")
        if kind != IMAGES:
            statement = "SELECT id FROM assignment WHERE annotator = ? AND kind = ? AND what = ?"
            if known := sql.execute(statement, [name, kind, what]).fetchone():
                return known[0]
        statement = "INSERT INTO assignment (annotator, kind, what, given_at) VALUES (?, ?, ?, ?)"
        share_id = new_id(sql.execute(statement, [name, kind, what, time.time()]))
        _add_images(sql, share_id, image_ids)
    return share_id


def _add_images(sql: sqlite_utils.Database, share_id: int, image_ids: Sequence[int]) -> None:
    sql.conn.executemany(
        "INSERT OR IGNORE INTO assigned_image (assignment_id, image_id) VALUES (?, ?)",
        [(share_id, image_id) for image_id in image_ids],
    )


def _aside(db: Database, annotator: str, has_shares: bool) -> Aside:
    with db.reading():
        mask = np.zeros((db.value("SELECT max(id) FROM image") or 0) + 1, bool)
        own: np.ndarray | None = None
        if has_shares:
            mine = np.zeros(len(mask), bool)
            for id_, name, kind, what in _all(db):
                if kind == CLASS:
                    continue
                ids = _images_of(db, id_, kind, what)
                mask[ids] = True
                mine[ids] |= name == annotator
                if name == annotator:
                    own = np.flatnonzero(mine)
            mask = ~mine if own is not None else mask
        mask[readings.waiting(db)] = True
        overlap = readings.overlap(db)
        # With a smaller share one would be found at once, and it does not pay to ask.
        holds_untouched = overlap is not None and overlap.share == 1 and not readings.leaves_untouched(db)
    return Aside(mask, own, holds_untouched=holds_untouched)


def _all(db: Database) -> list[tuple[int, str, str, str]]:
    return db.tuples("SELECT id, annotator, kind, what FROM assignment ORDER BY id")


def _images_of(db: Database, share_id: int, kind: str, what: str) -> np.ndarray:
    if kind == FOLDER:
        return _in_folder(db, what)
    return db.numbers("SELECT image_id FROM assigned_image WHERE assignment_id = ?", [share_id])[:, 0]


def _in_folder(db: Database, folder: str) -> np.ndarray:
    inside = f"{folder}/" if folder else ""
    return db.numbers(
        "SELECT DISTINCT image_id FROM file WHERE image_id NOT NULL AND substr(path, 1, ?) = ?", [len(inside), inside]
    )[:, 0]

"""The Gallery's listings are those that a plain computation over the tables gives, after any history."""

import random
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import draw
from harness.asked import asked
from harness.published_runs import publish

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.records import Batch, Decision
from annotator.snapshot import gallery_listing
from annotator.snapshot.filters import GalleryFilter
from annotator.snapshot.gallery_listing import Sorting
from annotator.snapshot.sorts import SORTS_BY_NAME
from annotator.store.classes import class_changes, class_history, classes
from annotator.store.database.database import Database
from annotator.store.gallery import image_columns, image_names
from annotator.store.images import appearances, near_duplicate_groups
from annotator.store.labels import decisions, project_counts
from annotator.store.pictures.appearance import Appearance

PEOPLE = ("Ann", "Bob")
SOURCES = ("click", "suggestion", "gallery")
FILTERS = [
    {},
    {"has": (1,)},
    {"has": (1, 2)},
    {"lacks": (2,)},
    {"has": (1,), "lacks": (2,), "open": (3,)},
    {"open": (1, 3)},
    {"complete": True},
    {"complete": False, "by": "Ann"},
    {"flagged": True},
    {"flagged": False, "has": (2,)},
    {"source": "suggestion"},
    {"source": "gallery", "by": "Bob"},
    {"by": "Nobody"},
    {"from": date.today() - timedelta(days=2)},
    {"to": date.today() - timedelta(days=2)},
    {"from": date.today() - timedelta(days=3), "to": date.today() - timedelta(days=1), "by": "Ann"},
    {"folder": "deep"},
    {"name": "1"},
    {"name": "P/2"},
    {"name": "1.JPG", "open": (1,)},
    {"name": "%"},
    {"facts": (("site", "north"),)},
    {"facts": (("site", "north"), ("licence", "free")), "has": (1,)},
    {"facts": (("site", "nowhere"),)},
    {"quality": "dark"},
    {"twins": "has"},
    {"twins": "further", "complete": False},
    {"quality": "overexposed", "open": (1,)},
    {"camera": "Trap 4"},
    {"place": "pond", "has": (1,)},
    {"place": "deep"},
    {"hour": (None, 0.25)},
    {"hour": (0.25, 24)},
    {"captured": (date(1970, 1, 1), None)},
    {"captured": (None, date(1969, 12, 31))},
    {"brightness": (10, 30)},
    {"size": (72, 73), "sharpness": (0, 0.3)},
    {"facts": (("weight", "3..5"),)},
    {"facts": (("weight", "..3.5"), ("site", "north"))},
    {"facts": (("site", "a..b"),)},
]
NOTHING = dict.fromkeys(("has", "lacks", "open", "facts"), ()) | dict.fromkeys(
    ("source", "by", "folder", "name", "quality", "twins", "camera", "place"), ""
)
RANGES = ("hour", "captured", "brightness", "size", "sharpness")
IMPORT = {"uuid": "of-facts", "source": "", "format": "csv", "annotator": "Ann", "imported_at": 0, "counts": "{}"}
SORTINGS = [
    Sorting(by, down, 1 if by == "probability" else None, column="weight" if by == "column" else "")
    for by in SORTS_BY_NAME
    if by != "like"  # test_image_similarity.py
    for down in (False, True)
]


class Plain:
    """What a listing must be, by a look at every row."""

    def __init__(self, db: Database):
        undone = {row["undoes"] for row in db.rows("SELECT undoes FROM decision")}
        self.held: dict[int, list[dict]] = {}
        for row in db.rows("SELECT * FROM decision WHERE action != 'undo' ORDER BY id"):
            if row["id"] not in undone:
                self.held.setdefault(row["image_id"], []).append(row)
        self.labels: dict[int, dict[int, int]] = {}
        for row in db.rows("SELECT * FROM label"):
            self.labels.setdefault(row["image_id"], {})[row["class_id"]] = row["state"]
        self.flagged = {row["id"] for row in project_counts.load_flagged_images(db)}
        self.classes = [class_.id for class_ in classes.load_active_classes(db)]
        self.images = db.rows("SELECT id, name, captured_at, camera FROM image ORDER BY name_key, id")
        firsts = dict(db.tuples("SELECT image_id, first_id FROM twin"))
        sizes = Counter(firsts.values())
        self.twins = {image: (first, image) for image, first in firsts.items() if sizes[first] > 1}
        self.looks = {row["image_id"]: row for row in db.rows("SELECT * FROM appearance")}
        self.facts = {tuple(row.values()) for row in db.rows("SELECT image_id, name, value FROM attribute")}
        self.values = {(image, name): value for image, name, value in self.facts}

    def ids(self, only: SimpleNamespace, sorting: Sorting) -> list[int]:
        shown = [image for image in self.images if self.is_shown(image, only)]
        valued = [image for image in shown if self.value(image, sorting.by) is not None]
        if sorting.by != "name":
            valued.sort(key=lambda image: self.value(image, sorting.by))
        return [image["id"] for image in (valued[::-1] if sorting.descending else valued)] + [
            image["id"] for image in shown if self.value(image, sorting.by) is None
        ]

    def value(self, image: dict, by: str) -> float | None:
        given, own = self.held.get(image["id"]), self.labels.get(image["id"], {})
        looks = self.looks.get(image["id"])
        return {
            "name": 0,
            "decided": given and given[-1]["id"],
            "captured": image["captured_at"],
            "labels": sum(own.get(class_id) == 1 for class_id in self.classes),
            "probability": PROBABILITIES.get(image["id"]),
            "brightness": looks and float(np.float16(looks["brightness"])),
            "sharpness": looks and float(np.float16(looks["sharpness"])),
            "size": looks and 72,
            "twins": self.twins.get(image["id"]),
            "hour": image["captured_at"] and image["captured_at"] // 60 / 60,
            "camera": image["camera"],
            "place": self.values.get((image["id"], "location")) or image["name"].rpartition("/")[0] or None,
            "column": float(self.values[image["id"], "weight"]) if (image["id"], "weight") in self.values else None,
        }[by]

    def has_fact(self, image: int, name: str, wanted: str) -> bool:
        value = self.values.get((image, name))
        if name == "weight" and value is not None:
            low, high = (float(end) if end else None for end in wanted.split(".."))
            return (low is None or float(value) >= low) and (high is None or float(value) < high)
        return value == wanted

    def is_within(self, image: dict, name: str, ends: tuple | None) -> bool:
        if ends is None:
            return True
        value = self.value(image, name)
        if value is None:
            return False
        if name == "captured":
            value = date.fromtimestamp(value)
            return (ends[0] is None or value >= ends[0]) and (ends[1] is None or value <= ends[1])
        value *= 100 if name == "brightness" else 1
        return (ends[0] is None or value >= ends[0]) and (ends[1] is None or value < ends[1])

    def is_shown(self, image: dict, only: SimpleNamespace) -> bool:
        own, given = self.labels.get(image["id"], {}), self.held.get(image["id"], [])
        day = datetime.fromtimestamp(given[-1]["decided_at"]).date() if given else None
        folder, _, _ = image["name"].rpartition("/")
        return (
            all(own.get(class_id) == 1 for class_id in only.has)
            and all(own.get(class_id) == -1 for class_id in only.lacks)
            and all(class_id not in own for class_id in only.open)
            and only.complete in (None, all(class_id in own for class_id in self.classes))
            and only.flagged in (None, image["id"] in self.flagged)
            and (not only.source or any(row["source"] == only.source for row in given))
            and (not only.by or any(row["annotator"] == only.by for row in given))
            and (only.since is None or (day is not None and day >= only.since))
            and (only.to is None or (day is not None and day <= only.to))
            and (not only.folder or f"{folder}/".startswith(f"{only.folder}/"))
            and only.name.casefold() in image["name"].casefold()
            and all(self.has_fact(image["id"], *fact) for fact in only.facts)
            and (not only.camera or image["camera"] == only.camera)
            and (not only.place or self.value(image, "place") == only.place)
            and all(self.is_within(image, name, getattr(only, name)) for name in RANGES)
            and (not only.twins or image["id"] in self.twins)
            and (only.twins != "further" or self.twins[image["id"]][0] != image["id"])
            and (not only.quality or (image["id"] in self.looks and DEFECTS[only.quality](self.looks[image["id"]])))
        )


PROBABILITIES: dict[int, float] = {}
DEFECTS = {"dark": lambda looks: looks["brightness"] < 0.2, "overexposed": lambda looks: looks["overexposed"] >= 0.25}


def agree(db: Database, some: random.Random | None = None) -> None:
    """Each filter, in each order or in one of them, as it is kept and as a new process finds it."""
    fresh, plain = Database(db.paths.project), Plain(db)
    for values in FILTERS:
        only = GalleryFilter.build(**values)
        wanted_of = SimpleNamespace(
            **{"complete": None, "flagged": None, "to": None, **dict.fromkeys(RANGES), **NOTHING, **values},
            since=values.get("from"),
        )
        if not only.class_ids <= set(plain.classes):
            with pytest.raises(AnnotatorError, match="no class 2"):
                gallery_listing.get_listing(db, only, Sorting())
            continue
        for sorting in SORTINGS if some is None else [some.choice(SORTINGS)]:
            wanted = plain.ids(wanted_of, sorting)
            for one in (db, fresh):
                ids = gallery_listing.get_listing(one, only, sorting).get_ids(0, 1000)
                assert ids == wanted, (only, sorting, one is fresh)
    fresh.close()


@pytest.fixture
def predicted(db):
    """A run that knows 24 images; the first class has the same probability on two of them."""
    probabilities = np.linspace(0.02, 0.98, 24).astype(np.float16)
    probabilities[5] = probabilities[17]
    publish(db, np.stack([probabilities] * 3, 1))
    with db.writing() as sql:
        sql.execute("INSERT INTO attribute SELECT id, 'weight', id * 7 % 11 / 2.0, NULL FROM image WHERE id % 6")
    PROBABILITIES.clear()
    PROBABILITIES.update(enumerate(probabilities.tolist(), start=1))
    return db


def raise_once(error: Exception, function: Callable) -> Callable:
    """The function, but for the first call."""
    errors = [error]

    def call(*arguments: object) -> object:
        if errors:
            raise errors.pop()
        return function(*arguments)

    return call


def change(db: Database, chance: random.Random, days: float) -> None:
    """One thing that people do, some days ago."""
    image = chance.choice(db.tuples("SELECT id FROM image"))[0]
    known = [class_.id for class_ in classes.load_active_classes(db)]
    shared = {"annotator": chance.choice(PEOPLE), "source": chance.choice(SOURCES)}
    name, class_id, state = (
        str(uuid.UUID(int=chance.getrandbits(128))),
        chance.choice(known),
        chance.choice([1, 1, -1, 0]),
    )
    action = chance.choice(
        ["label"] * 6 + ["done", "done", "skip", "flag", "flag", "clear", "comment", "batch", "undo", "undo"]
    )
    before = decisions.get_newest_decision_id(db)
    if action == "batch":
        some = chance.sample([row[0] for row in db.tuples("SELECT id FROM image")], 5)
        cells = [(one, class_id, chance.choice([1, -1, None]), None) for one in some]
        given = Batch(name, cells=cells, **shared)
    elif action == "undo":
        given = Decision(name, "undo", shared["annotator"], "click")
    else:
        cell = {"label": {"class_id": class_id, "state": state}, "clear": {"class_id": class_id}}.get(action, {})
        note = {"flag": chance.choice(["", "blurred"]), "comment": "a mask?"}.get(action, "")
        given = Decision(name, action, image_id=image, note=note, **cell, **shared)
    assert not decisions.save(db, [given]).refused
    with db.writing() as sql:
        sql.execute("UPDATE decision SET decided_at = decided_at - ? WHERE id > ?", [86400 * days, before])


CLASS_CHANGES = {
    3: lambda db: classes.add_classes(db, [("owl", "")]),
    6: lambda db: class_changes.archive(db, "Ann", [2]),
    7: lambda db: class_changes.restore(db, "Ann", [2]),
    8: lambda db: class_changes.merge(db, "Ann", [4], 1, same=True),
    9: lambda db: class_history.undo_change(db, "Ann"),
    10: lambda db: class_changes.archive(db, "Ann", [2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_gallery_filters_and_sort_orders_equal_a_full_recomputation_after_random_changes(
    predicted, photos: Path, seed, monkeypatch
):
    db, chance = predicted, random.Random(seed)
    if seed == 2:  # as after so many changes that reading everything again is quicker
        monkeypatch.setattr(image_columns, "MAX_CHANGED_IMAGES", 1)
        monkeypatch.setattr(image_names, "MAX_NAMES_LOOKED_UP", 0)
    agree(db)
    for step in range(12):
        for _ in range(chance.randint(1, 8)):
            change(db, chance, days=max(0, 4 - step / 2))
        CLASS_CHANGES.get(step, lambda db: None)(db)
        if step == 5:
            draw(photos / "deep" / "0.5.jpg", seed=77)
            draw(photos / "A 1.jpg", seed=78)
            (photos / "11.jpg").rename(photos / "deep" / "Z11.jpg")
            set_up_project(db.paths.project, images_folder=photos)
        if step == 4:
            with db.writing() as sql:
                sql.execute("INSERT INTO attribute SELECT id, 'site', iif(id % 2, 'north', 'south'), NULL FROM image")
                sql.execute("INSERT INTO attribute SELECT id, 'licence', 'free', NULL FROM image WHERE id % 3 = 0")
                sql.execute("INSERT INTO attribute SELECT id, 'location', 'pond', NULL FROM image WHERE id % 4 = 0")
                sql["import"].insert(IMPORT)
        if step in (1, 6):
            measured = [image for (image,) in db.tuples("SELECT id FROM image WHERE id % 2 = ?", [step % 2])]
            numbers = [Appearance(*(chance.choice((0.1, 0.3, 0.5)) for _ in range(4)), 0) for _ in measured]
            appearances.save(db, zip(measured, numbers, strict=True))
        if step in (3, 8):
            ids = np.array([image for (image,) in db.tuples("SELECT id FROM image ORDER BY id")])
            near_duplicate_groups.save_groups(db, ids, ids % step + 1)
        if step in (2, 7):
            with db.writing() as sql:
                sql.execute("UPDATE image SET captured_at = 1000 + (id * 7 + ?) % 9 WHERE id % 3 = 0", [step])
                sql.execute("UPDATE image SET camera = iif(id % 5, 'Trap 4', 'Trap 3') WHERE id % ? = 0", [step])
        agree(db, None if step == 11 else chance)


def test_gallery_listing_version_is_stable_while_its_tiles_show_current_labels(predicted):
    db, only = predicted, GalleryFilter.build(open=(1,))
    first = gallery_listing.get_window(db, only, Sorting(), 0, 10)
    assert (first.total, first.changed, len(first.images)) == (24, False, 10)
    third = first.images[2].image.id
    decisions.save(db, [Decision("label-one", "label", "Ann", "click", third, 1, 1)])
    decisions.save(db, [Decision("flag-one", "flag", "Ann", "click", third, note="dark")])
    decisions.save(db, [Decision("comment-one", "comment", "Ann", "click", third, note="fox?")])
    again = gallery_listing.get_window(db, only, Sorting(), 0, 10, first.version)
    assert [tile.image for tile in again.images] == [tile.image for tile in first.images]
    assert (again.version, again.total, again.changed) == (first.version, 24, True)
    assert (again.images[2].labels, again.images[2].flag, again.images[2].comments) == ([(1, 1)], "dark", 1)
    now = gallery_listing.get_window(db, only, Sorting(), 0, 10)
    assert (now.total, now.changed) == (23, False) and now.version != first.version
    assert third not in [tile.image.id for tile in now.images]
    kept, new = (gallery_listing.get_listing(db, only, Sorting(), version) for version in (first.version, now.version))
    assert (kept.find_place(third), new.find_place(third), kept.find_place(99)) == (2, None, None)
    unknown = gallery_listing.get_window(db, only, Sorting(), 0, 10, "1.2.3.4")
    assert unknown.version == now.version, "a version that is not kept is made anew"


@pytest.mark.slow
def test_gallery_is_correct_again_after_an_error_during_its_refresh(predicted, photos: Path, monkeypatch):
    db, chance = predicted, random.Random(5)
    agree(db)
    draw(photos / "deep" / "new.jpg", seed=77)
    set_up_project(db.paths.project, images_folder=photos)
    change(db, chance, days=0)
    with monkeypatch.context() as patch, pytest.raises(AnnotatorError, match="the disk is gone"):
        patch.setattr(
            classes, "load_active_classes", raise_once(AnnotatorError("the disk is gone"), classes.load_active_classes)
        )
        gallery_listing.list_filter_choices(db)
    agree(db)


def test_gallery_listings_are_current_after_concurrent_decisions(predicted):
    db, only = predicted, GalleryFilter.build(by="Ann")

    def look(number: int) -> int:
        return (
            sum(len(gallery_listing.get_listing(db, only, sorting).rows) for sorting in SORTINGS for _ in range(4))
            + number
        )

    with ThreadPoolExecutor(3) as threads:
        looks = [threads.submit(look, number) for number in range(3)]
        for number in range(40):
            change(db, random.Random(number), days=0)
    assert all(look.result() >= 0 for look in looks)
    agree(db)


def test_file_name_search_ranks_exact_matches_before_prefixes_before_the_rest(tmp_path, class_file):
    names = (
        "a/fox.jpg",
        "a/fox 2.jpg",
        "b/Fox.JPG",
        "b/redfox.jpg",
        "fox/deer.jpg",
        "fox.old.jpg",
        "\u00c9t\u00e9.jpg",
        "x0_%.jpg",
    )
    for number, name in enumerate(names):
        draw(tmp_path / "photos" / name, seed=number)
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos", class_file=class_file)
    db = Database(tmp_path / "project")

    def found(text: str, count: int = 10) -> list[str]:
        return [name for _, name in gallery_listing.find_images(db, text, count)]

    assert found("fox") == ["fox.old.jpg", "a/fox.jpg", "b/Fox.JPG", "a/fox 2.jpg", "b/redfox.jpg", "fox/deer.jpg"]
    assert found("fox", 2) == ["fox.old.jpg", "a/fox.jpg"] and found("fox", 0) == found("") == found("wolf") == []
    assert [name for name, _ in gallery_listing.list_filter_choices(db)["folder"]] == ["a", "b", "fox"]
    assert found("fox.jpg") == ["a/fox.jpg", "b/Fox.JPG", "b/redfox.jpg"]
    assert found("A/FOX") == ["a/fox.jpg", "a/fox 2.jpg"] and found("/de") == ["fox/deer.jpg"] == found("fox/")
    assert found("e\u0301t") == found("\u00c9T") == ["\u00c9t\u00e9.jpg"] and found("0_%") == ["x0_%.jpg"]


def test_gallery_routes_return_filtered_images_and_refuse_invalid_requests(project):
    with asked(project) as app:
        cell = {"uuid": "label-one", "action": "label", "image": 3, "class": 2, "state": -1, "source": "gallery"}
        assert app.post("/api/decisions", {"decisions": [cell]})[1]["saved"] == ["label-one"]
        only = {
            "filter": {"lacks": [2], "by": "Ann", "from": str(date.today()), "source": "gallery", "complete": False}
        }
        status, answer = app.post("/api/gallery", only | {"sort": "decided", "down": True, "start": 0, "count": 9})
        [image] = answer["images"]
        assert status == 200 and (answer["total"], answer["start"], answer["changed"]) == (1, 0, False)
        assert image["labels"] == [[2, -1]] and (image["id"], image["flag"], image["complete"]) == (3, None, False)
        assert app.post("/api/gallery/place", only | {"image": 3, "version": answer["version"]})[1]["place"] == 0
        assert app.post("/api/gallery/ids", {"first": 2, "last": 4})[1]["ids"] == [
            image["id"] for image in app.post("/api/gallery", {"start": 2, "count": 3})[1]["images"]
        ]
        assert app.post("/api/find", {"text": "23", "count": 5})[1]["images"][0]["name"] == "deep/23.png"
        for path, body in {
            "/api/gallery/ids": {"first": 0, "last": 5000},
            "/api/gallery": {"start": 0, "count": 1, "filter": {"has": [77]}},
            "/api/gallery/place": {"image": 1, "sort": "probability"},
        }.items():
            status, answer = app.post(path, body)
            assert status == 409 and answer["error"], path

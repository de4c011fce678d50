"""Orders by file name and capture time, neighbours in a folder, and how far each person has come."""

import re
import uuid

import numpy as np
import pytest
from harness.short_forms import mark_slow_after
from PIL import Image

from annotator.queues import image_queue, query_order
from annotator.records import Decision, WantedImages
from annotator.store.database.database import Database
from annotator.store.images import images, sequences
from annotator.store.images.registration import register_folder
from annotator.store.labels.decisions import save
from annotator.store.pictures.files import list_files
from annotator.store.pictures.name_keys import build_name_key

COUNT = 60


@pytest.fixture(params=[0, 1, 2])
def project(request, tmp_path):
    """Images in three folders with numbers in their names, half of them with a capture time, some answered, skipped,
    complete or missing."""
    rng = np.random.default_rng(request.param)
    db = Database(tmp_path / "p", create=True)
    folders = [(1, ""), (1, "trip/"), (1, "trip/day 2/"), (2, ""), (2, "Trip/")]
    with db.writing() as sql:
        for folder in ("/one", "/two"):
            sql.execute("INSERT INTO folder (path) VALUES (?)", [folder])
        sql.conn.executemany(
            "INSERT INTO class (name, since_decision, key) VALUES (?, 0, '')", [("fox",), ("heron",), ("deer",)]
        )
        for number in range(1, COUNT + 1):
            folder_id, folder = folders[rng.integers(5)]
            path = f"{folder}{rng.choice(['img', 'IMG', 'a'])}{rng.integers(1, 2000)}{rng.choice(['', 'b7', '-1'])}.jpg"
            time = float(rng.integers(1, 20)) if rng.random() < 0.5 else None
            values = [number, f"{number}:{folder_id}:{path}", f"{number:064}", build_name_key(folder_id, path), time]
            sql.execute(
                """INSERT INTO image (id, name, sha256, width, height, name_key, captured_at)
                VALUES (?, ?, ?, 9, 9, ?, ?)""",
                values,
            )
    for number in range(1, COUNT + 1):
        what = rng.choice(["", "label", "skip", "done", "missing", "label, skip"], p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1])
        for action in what.split(", "):
            if action == "missing":
                images.mark_problem(db, number, "gone")
            elif action:
                answer(db, action, number)
    return db


def answer(db, action: str, image_id: int, annotator: str = "Ann") -> None:
    cell = (1, 1) if action == "label" else (None, None)
    one = Decision(str(uuid.uuid4()), action, annotator, "click", image_id, *cell)
    assert not save(db, [one]).refused


def plainly(db, sequence: str) -> list[int]:
    """All images by a plain sort of their paths and times."""

    def key(row) -> tuple:
        _, folder_id, path = row["name"].split(":")
        *folders, name = path.lower().split("/")
        numbers = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
        by_name = (int(folder_id), folders, numbers, row["id"])
        return (row["captured_at"] or np.inf, *by_name) if sequence == "time" else by_name

    return [row["id"] for row in sorted(db.rows("SELECT * FROM image"), key=key)]


def folder_of(db, image_id: int) -> str:
    _, folder_id, path = db.value("SELECT name FROM image WHERE id = ?", [image_id]).split(":")
    return f"{folder_id}:{path.lower().rpartition('/')[0]}"


def state_of(db, image_id: int) -> str:
    row = db.rows("SELECT stage, problem, stage_decision FROM image WHERE id = ?", [image_id])[0]
    action = db.value("SELECT action FROM decision WHERE id = ?", [row["stage_decision"]])
    return "gone" if row["problem"] else "complete" if row["stage"] == 3 else "skipped" if action == "skip" else "open"


def given(db, holder: str, sequence: str, *, have=(), want: int = 200, **more) -> list[int]:
    wanted = WantedImages("annotate", holder, more.pop("annotator", "Ann"), have, want, order=sequence, **more)
    return [item.image.id for item in image_queue.lease_next_work(db, wanted).items]


@pytest.mark.parametrize("sequence", mark_slow_after(3, sequences.SEQUENCES))
def test_sequence_resumes_after_the_last_image_wraps_around_and_ends_with_skipped_ones(project, sequence):
    order = plainly(project, sequence)
    states = {image_id: state_of(project, image_id) for image_id in order}
    skipped = {image_id for image_id in order if states[image_id] == "skipped"}
    for after in (0, order[0], order[20], order[-1]):
        place = order.index(after) + 1 if after else 0
        round_ = [image_id for image_id in order[place:] + order[:place] if states[image_id] == "open"]
        came: list[int] = []
        while more := given(project, "tab", sequence, have=came, want=7, after=after):
            came += more
        assert came[: len(round_)] == round_
        assert set(came[len(round_) :]) == skipped
        given(project, "tab", sequence, want=0)


@pytest.mark.slow
@pytest.mark.parametrize("sequence", sequences.SEQUENCES)
def test_neighbors_of_an_image_are_adjacent_in_its_sorted_folder_regardless_of_labels(project, sequence):
    order = plainly(project, sequence)
    for image_id in order:
        folder = [
            other for other in order
            if folder_of(project, other) == folder_of(project, image_id)
            and (other == image_id or state_of(project, other) != "gone")
        ]  # fmt: skip
        place = folder.index(image_id)
        expected = (folder[place - 1] if place else None, folder[place + 1] if place + 1 < len(folder) else None)
        assert sequences.find_neighbors(project, image_id, sequence) == expected


def test_two_annotators_in_one_sequence_get_different_adjacent_images(project):
    ann = given(project, "ann", "name", want=4)
    bob = given(project, "bob", "name", want=4, annotator="Bob")
    opened = [image_id for image_id in plainly(project, "name") if state_of(project, image_id) == "open"]
    assert ann + bob == opened[:8]


def test_annotator_resumes_each_sequence_at_their_own_last_image(project):
    order = [image_id for image_id in plainly(project, "name") if state_of(project, image_id) == "open"]
    came = given(project, "tab", "name", want=3)
    for place, image_id in enumerate(came):
        answer(project, "label", image_id)
        given(project, "tab", "name", have=came[place + 1 :], want=0, after=image_id)
    answer(project, "label", order[12])  # found by its name: not in the order
    given(project, "tab", "name", want=0)
    assert given(project, "other window", "name", want=2) == order[3:5]
    assert given(project, "bob", "name", want=2, annotator="Bob") == order[:2], "incomplete images of others, too"
    assert given(project, "later", "time", want=1)[0] == next(
        image_id for image_id in plainly(project, "time")
        if state_of(project, image_id) == "open" and image_id not in order[:2] + order[3:5]
    )  # fmt: skip
    assert given(project, "again", "name", want=1, after=0)[0] == order[2], "begun anew; the first two are Bob's"


def test_reloaded_page_in_a_sequence_shows_its_leased_unanswered_images_first(project):
    came = given(project, "tab", "name", want=6)
    answer(project, "label", came[0])
    given(project, "tab", "name", have=came[1:], want=0, after=came[0])
    assert given(project, "tab-2", "name", want=5, instead="tab") == came[1:]


def test_last_image_of_an_annotator_in_a_sequence_is_stored_unless_unknown(project):
    order = plainly(project, "name")
    sequences.set_reached(project, "Ann", "name", order[5])
    wanted = WantedImages("annotate", "tab", "Ann", (), 1, order="name")
    assert image_queue.lease_next_work(project, wanted).after == order[5]
    sequences.set_reached(project, "Ann", "name", 999_999)
    assert sequences.get_reached(project, "Ann", "name") == order[5]
    sequences.set_reached(project, "Ann", "name", 0)
    assert sequences.get_reached(project, "Ann", "name") == 0


def test_sequence_can_be_the_default_order_of_the_project(project):
    for name in sequences.SEQUENCES:
        query_order.set_default(project, name)
        wanted = WantedImages("annotate", name, "Ann", (), 1)
        assert [item.image.id for item in image_queue.lease_next_work(project, wanted).items] == given(
            project, name, name
        )[:1]
        assert query_order.QUERY_ORDERS[name].title and query_order.QUERY_ORDERS[name].about


def test_image_order_follows_file_names_after_renaming_files_and_folders(tmp_path):
    db = Database(tmp_path / "p", create=True)

    def scan(folder) -> list[str]:
        listing = list_files(folder, tmp_path / "p")
        register_folder(db, folder, listing.list_images(), kept_out=listing.kept_out)
        return [row[0] for row in db.tuples("SELECT name FROM image ORDER BY name_key, id")]

    for number, name in enumerate(["img10.png", "img9.png", "b/1.png", "a b/1.png"]):
        (tmp_path / "one" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / "one" / name)
    assert scan(tmp_path / "one") == ["img9.png", "img10.png", "a b/1.png", "b/1.png"]
    (tmp_path / "one" / "img9.png").rename(tmp_path / "one" / "img11.png")
    assert scan(tmp_path / "one") == ["img10.png", "img11.png", "a b/1.png", "b/1.png"]
    (tmp_path / "one").rename(tmp_path / "two")
    Image.new("RGB", (8, 8), "blue").save(tmp_path / "two" / "img2.png")
    assert scan(tmp_path / "two") == ["img2.png", "img10.png", "img11.png", "a b/1.png", "b/1.png"]
    assert len({row[0] for row in db.tuples("SELECT substr(name_key, 1, 6) FROM image")}) == 1

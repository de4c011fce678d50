"""Events: found from times and places, changed by people, and always those that follow from images and changes."""

import json
import random
from datetime import UTC, datetime

import numpy as np
import pytest
from harness.short_forms import mark_slow_after
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import add_folder, set_up_project
from annotator.humanize import format_exact_duration, parse_duration
from annotator.store.database.database import Database
from annotator.store.events import capture, project_events
from annotator.store.events.finding import Boundary, arrange_images, find_event_starts, number_events_and_frames
from annotator.store.images import images

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp()


def found(times, places=None, sequences=None, gap=60.0, boundaries=()) -> list[set[int]]:
    """The events of these images as sets of rows, in their order."""
    count = len(times)
    places = np.zeros(count, np.int64) if places is None else np.array(places)
    sequences = np.full(count, -1) if sequences is None else np.array(sequences)
    arrangement = arrange_images(np.array(times, float), places, sequences)
    of, frames = number_events_and_frames(
        arrangement, find_event_starts(arrangement, gap, boundaries), np.arange(count)
    )
    groups: dict[int, list[tuple[int, int]]] = {}
    for row in arrangement.order.tolist():
        groups.setdefault(int(of[row]), []).append((int(frames[row]), row))
    for event, members in groups.items():
        assert [frame for frame, _ in members] == list(range(len(members)))
        assert event == min(row for _, row in members)
    return [{row for _, row in members} for members in groups.values()]


def test_images_of_one_place_within_the_gap_form_one_event():
    assert found([0, 60, 121, 100], gap=60) == [{0, 1, 2, 3}]
    assert found([0, 60, 120.5, 200], gap=60) == [{0, 1}, {2}, {3}]
    assert found([0, 1, 2, 3], places=[0, 1, 0, 1]) == [{0, 2}, {1, 3}]
    assert found([5, 5, 5], gap=0) == [{0, 1, 2}], "equal times"
    assert found([]) == []


def test_image_without_a_time_forms_a_single_image_event():
    assert found([np.nan, 3, np.nan, 4]) == [{1, 3}, {0}, {2}]


def test_imported_sequence_is_one_event_regardless_of_times():
    assert found([0, 500, 1, np.nan, 501], sequences=[7, 7, -1, 7, 8]) == [{0, 1, 3}, {2}, {4}]


def test_clock_reset_starts_new_events_when_file_names_follow_times():
    day = [1000.0 * step for step in range(30)]
    times = [*day, *(10 + time for time in day)]  # counted up by the camera, whose clock began anew
    assert len(found(times)) == 60
    shuffled = times[::2] + times[1::2]
    random.Random(3).shuffle(shuffled)
    assert len(found(shuffled)) == 30, "names tell nothing here"


def test_event_search_handles_10000_simultaneous_images_and_a_million_days():
    assert len(found([NOON] * 10_000)) == 1
    times = 86400.0 * np.arange(1_000_000)
    arrangement = arrange_images(times, np.zeros(len(times), np.int64), np.full(len(times), -1))
    of, frames = number_events_and_frames(arrangement, find_event_starts(arrangement, 60), np.arange(len(times)))
    assert (of == np.arange(len(times))).all() and not frames.any()


def test_event_split_overrides_an_earlier_merge_and_a_clock_shift_ends_a_merge():
    merged = Boundary(0, 1, is_split=False, seconds=100)
    assert found([0, 100], boundaries=[merged]) == [{0, 1}]
    assert found([0, 100], boundaries=[merged, Boundary(0, 1, is_split=True)]) == [{0}, {1}]
    assert found([0, 3700], boundaries=[merged]) == [{0}, {1}]
    assert found([0, 10, 100, 5000], boundaries=[Boundary(0, 2, is_split=False, seconds=100)])[0] == {0, 1, 2}
    assert found([np.nan, np.nan], boundaries=[Boundary(0, 1, is_split=False)]) == [{0, 1}]


def plainly(times, places, sequences, gap) -> list[set[int]]:
    """The events by loops, of places too small for the names to tell of clocks."""
    rows = range(len(times))
    units: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        units.setdefault(("s", sequences[row]) if sequences[row] >= 0 else ("i", row), []).append(row)

    def began(members: list[int]) -> tuple[int, float, int]:
        known = [times[row] for row in members if times[row] is not None]
        return places[members[0]], min(known, default=float("inf")), members[0]

    events_: list[set[int]] = []
    before: tuple[int, float] | None = None
    for kind, members in sorted(((key[0], unit) for key, unit in units.items()), key=lambda unit: began(unit[1])):
        place, time, _ = began(members)
        is_near = before is not None and before[0] == place and time - before[1] <= gap
        if kind == "i" and is_near:
            events_[-1] |= set(members)
        else:
            events_.append(set(members))
        before = (place, time) if kind == "i" and time < float("inf") else None
    return events_


A_TIME = st.one_of(st.none(), st.integers(0, 400).map(float))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(A_TIME, st.integers(0, 2), st.sampled_from([-1, -1, -1, 0, 1])), max_size=18),
    st.integers(0, 120),
)
def test_events_equal_those_of_a_plain_reference_search(rows, gap):
    times, places, sequences = ([row[part] for row in rows] for part in range(3))
    known = [np.nan if time is None else time for time in times]
    assert found(known, places, sequences, gap) == plainly(times, places, sequences, gap)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-05-01T12:00:00Z", NOON),
        ("2024-05-01 14:00:00+02:00", NOON),
        ("2024:05:01 12:00:00", NOON),
        ("IMG_20240501_120000.jpg", NOON),
        ("PXL_20240501_120000123.jpg", NOON),
        ("cam3 2024-05-01 12.00.00 (2).jpg", NOON),
        ("2024-05-01", None),
        ("IMG_20249901_120000.jpg", None),
        ("0000:00:00 00:00:00", None),
        ("120240501120000.jpg", None),
        ("heron", None),
    ],
)
def test_capture_times_are_parsed_from_fields_and_file_names(text, seconds):
    assert capture.parse_seconds(text) == seconds


def test_durations_survive_formatting_and_parsing_and_invalid_ones_are_refused():
    for seconds in (0, 0.5, 60, 61, 5400, -3600, 90061, 86400):
        assert parse_duration(format_exact_duration(seconds)) == seconds
    assert (parse_duration("+1h30m"), parse_duration(" 2 d "), parse_duration("7")) == (5400, 172800, 7)
    for text in ("", "h", "1x", "--1h", "1h-2m", "nan"):
        with pytest.raises(AnnotatorError, match="is no time"):
            parse_duration(text)


# ---- a project


def photo(path, at: datetime | None, seed: int) -> None:
    exif = Image.Exif()
    if at:
        exif.get_ifd(0x8769)[0x9003] = at.strftime("%Y:%m:%d %H:%M:%S")
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (9, 9), (seed, seed // 256, 7)).save(path, exif=exif)


@pytest.fixture
def traps(tmp_path):
    """Two cameras: bursts of three, a minute and a half between them, and an image of no time."""
    for number in range(6):
        seconds = int(NOON) + 90 * (number // 3) + number
        photo(tmp_path / f"photos/a/{number}.jpg", datetime.fromtimestamp(seconds, UTC), number)
        photo(tmp_path / f"photos/b/{number}.jpg", datetime.fromtimestamp(seconds, UTC), 100 + number)
    photo(tmp_path / "photos/a/none.jpg", None, 200)
    set_up_project(tmp_path / "traps", images_folder=tmp_path / "photos")
    return tmp_path / "traps"


def stored(project) -> list[list[str]]:
    """The stored events as names of images, in the order of names."""
    groups: dict[int, list[str]] = {}
    for event, name in Database(project).tuples(
        "SELECT event_id, name FROM image_event JOIN image i ON i.id = image_id ORDER BY event_id, frame"
    ):
        groups.setdefault(event, []).append(name.removesuffix(".jpg"))
    return sorted(groups.values())


BURSTS = [[f"{place}/{number}" for number in numbers] for place in "ab" for numbers in ((0, 1, 2), (3, 4, 5))]


@pytest.mark.slow
def test_project_events_can_be_found_split_merged_shifted_and_each_change_undone(traps, annotator):
    assert stored(traps) == []
    told = annotator("events", traps).stdout
    assert "13 images in 5 events, cut at 60 s. 1 image without a time" in told
    assert stored(traps) == sorted([*BURSTS, ["a/none"]])

    annotator("events", traps, "--merge", "a/4.jpg")
    assert ["a/0", "a/1", "a/2", "a/3", "a/4", "a/5"] in stored(traps)
    annotator("events", traps, "--split", "a/1.jpg")
    assert ["a/1", "a/2", "a/3", "a/4", "a/5"] in stored(traps)
    annotator("events", traps, "--shift", "b=-1h")
    annotator("events", traps, "--gap", "2min")
    assert stored(traps)[-1] == [f"b/{number}" for number in range(6)]
    numbers = json.loads(annotator("events", traps, "--json").stdout)
    assert (numbers["gap"], numbers["events"], numbers["edits"]) == (120, 4, 4)
    assert numbers["sizes"] == {"1": 2, "5": 1, "6": 1}
    assert sum(bar["pairs"] for bar in numbers["gaps"]) == 10, "of 13 images, but between cameras and without a time"

    for undone in ("gap of 2 min", "shift of b by -1 h", "split before a/1.jpg", "merge before a/3.jpg"):
        assert f"Undid the {undone}." in annotator("events", traps, "--undo").stdout
    assert stored(traps) == sorted([*BURSTS, ["a/none"]])
    assert "nothing to undo" in annotator("events", traps, "--undo", code=1).stderr


def test_event_changes_persist_when_images_are_added(traps, tmp_path):
    db = Database(traps)
    ids = images.load_ids_by_name(db)
    project_events.merge(db, ids["a/3.jpg"], "Ann")
    project_events.split_event(db, ids["b/1.jpg"], "Ann")
    photo(tmp_path / "photos/a/2 later.jpg", datetime.fromtimestamp(NOON + 80, UTC), 220)
    add_folder(db, tmp_path / "photos")
    assert not project_events.are_current(db)
    project_events.find_and_save(db)
    assert project_events.are_current(db)
    assert stored(traps) == sorted(
        [["a/0", "a/1", "a/2", "a/2 later", "a/3", "a/4", "a/5"], ["a/none"], ["b/0"], ["b/1", "b/2"], BURSTS[3]]
    )


def test_imported_fields_set_time_place_and_sequence_of_images(traps, tmp_path, annotator):
    table = tmp_path / "facts.csv"
    rows = ["image,timestamp,camera,seq_id", "a/0.jpg,2024-05-01 13:00:00,left,"]
    rows += ["b/0.jpg,2024-05-01T15:00:30+02:00,left,", "a/3.jpg,,,s1", "a/none.jpg,,,s1"]
    table.write_text("\n".join(rows))
    annotator("import", traps, table, "--label-column", "none", "--yes")
    annotator("events", traps)
    facts = [["a/0", "b/0"], ["a/3", "a/none"]]
    assert stored(traps) == sorted([*facts, ["a/1", "a/2"], ["a/4", "a/5"], ["b/1", "b/2"], BURSTS[3]])


@pytest.mark.parametrize(
    ("words", "problem"),
    mark_slow_after(
        4,
        [
            (("--split", "a/0.jpg"), "a/0.jpg begins its event already"),
            (("--merge", "b/1.jpg"), "first of its folder or camera"),
            (("--merge", "a/9.jpg"), "No image is called"),
            (("--shift", "c=1h"), "No image lies in a folder 'c'"),
            (("--shift", "a=0"), "more than 0 seconds"),
            (("--shift", "a"), "names a folder and a time"),
            (("--gap", "-1s"), "0 seconds or more"),
            (("--gap", "1s", "--undo"), "One change at a time: so"),
        ],
    ),
)
def test_invalid_event_change_is_refused_with_a_reason_and_changes_nothing(traps, annotator, words, problem):
    annotator("events", traps)
    before = stored(traps)
    said = annotator("events", traps, *words, code=1).stderr
    assert problem.replace(": so", ", so") in said
    assert stored(traps) == before and not Database(traps).tuples("SELECT 1 FROM event_edit")


def test_event_change_sent_twice_is_stored_once(traps):
    db = Database(traps)
    image = images.load_ids_by_name(db)["a/1.jpg"]
    for _ in range(2):
        project_events.split_event(db, image, "Ann", "one")
    for _ in range(2):
        project_events.undo(db, "Ann", "two")
    assert db.tuples("SELECT action FROM event_edit ORDER BY id") == [("split",), ("undo",)]


@pytest.mark.parametrize("seed", mark_slow_after(2, range(6)))
def test_stored_events_equal_a_fresh_search_after_random_changes_and_undos(traps, seed):
    rng, db = random.Random(seed), Database(traps)
    ids = list(images.load_ids_by_name(db).values())
    actions = {
        "split": lambda: project_events.split_event(db, rng.choice(ids), "Ann"),
        "merge": lambda: project_events.merge(db, rng.choice(ids), "Ann"),
        "shift": lambda: project_events.shift_clock(
            db, rng.choice(["", "a", "b"]), rng.choice([-3600, -45, 45, 3600]), "Ann"
        ),
        "gap": lambda: project_events.set_gap(db, rng.choice([0, 1, 60, 88, 200]), "Ann"),
        "undo": lambda: project_events.undo(db, "Ann"),
    }
    made: list[str] = []
    for _ in range(60):
        action = rng.choice([*actions, "undo"])
        try:
            actions[action]()
        except AnnotatorError:
            continue
        made.append(action)
        after = db.tuples("SELECT * FROM image_event ORDER BY 1")
        with db.writing() as sql:
            sql.execute("DELETE FROM image_event")
        project_events.find_and_save(Database(traps))
        assert db.tuples("SELECT * FROM image_event ORDER BY 1") == after, made
    assert set(made) == set(actions)
    while True:
        try:
            project_events.undo(db, "Ann")
        except AnnotatorError:
            break
    assert stored(traps) == sorted([*BURSTS, ["a/none"]])


def test_event_edits_are_kept_after_their_undo_and_can_be_undone_only_once(traps):
    db = Database(traps)
    project_events.set_gap(db, 5, "Ann")
    before = db.rows("SELECT * FROM event_edit")
    project_events.undo(db, "Bob")
    assert db.rows("SELECT * FROM event_edit")[:1] == before
    with pytest.raises(AnnotatorError), db.writing() as sql:  # an edit is undone once
        sql.execute(
            "INSERT INTO event_edit (uuid, action, undoes, annotator, edited_at) VALUES ('x', 'undo', 1, '', 0)"
        )

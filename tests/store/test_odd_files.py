"""Whatever lies in a folder and whatever becomes of it: nothing ends init, no name is false, no picture is another."""

import contextlib
import csv
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from conftest import draw
from hypothesis import given
from hypothesis import strategies as st

from annotator.errors import AnnotatorError
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.project_setup import set_up_project
from annotator.snapshot.project_status import collect_status
from annotator.store.database.database import Database
from annotator.store.images import browser_copies, images
from annotator.store.pictures.files import GONE_PROBLEM, escape_path, unescape_path
from annotator.worker.features.missing_files import MissingFileWatcher

NOBODY = 65534


def names(db: Database) -> dict[int, str]:
    return {image.id: image.name for image in images.load_all_images(db)}


def reasons(db: Database) -> dict[str, str]:
    return {one.path: one.reason for one in images.load_rejected_files(db)}


def raw(name: bytes) -> str:
    return os.fsdecode(name)


@pytest.fixture
def readable_folder():
    """A folder that belongs to a user without privileges, whoever runs the tests."""
    folder = Path(tempfile.mkdtemp(prefix="annotator-test-"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield folder
    for place in (folder, *folder.rglob("*")):
        if place.is_dir():
            place.chmod(0o700)
    shutil.rmtree(folder)


@contextlib.contextmanager
def without_privileges():
    """Root may read everything: as root, go on as somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def test_init_handles_odd_file_names_links_and_pipes(tmp_path, class_file):
    folder = tmp_path / "odd"
    draw(folder / "good.jpg", seed=1)
    draw(folder / raw(b"caf\xe9.jpg"), seed=2)
    draw(folder / r"caf\xe9.jpg", seed=3)
    draw(folder / raw(b"r\xe9union") / "in.jpg", seed=4)
    draw(folder / "two\nlines\x1b[31m.jpg", seed=5)
    draw(folder / "later.jpg", seed=6)
    os.utime(folder / "later.jpg", ns=(0, 2**63 + 10**9))
    (folder / raw(b"caf\xe9.txt")).write_text("not an image")
    (folder / "self.jpg").symlink_to("self.jpg")
    (folder / "there").symlink_to("back")
    (folder / "back").symlink_to("there")
    (folder / "up").symlink_to("..")
    (folder / "in").symlink_to(raw(b"r\xe9union"))
    os.mkfifo(folder / "pipe.jpg")
    project = tmp_path / "project"
    done = set_up_project(project, images_folder=folder, class_file=class_file)
    db = Database(project)
    expected = {"good.jpg", r"caf\xe9.jpg", r"caf\x5cxe9.jpg", r"r\xe9union/in.jpg", "two\nlines\x1b[31m.jpg"}
    assert set(names(db).values()) == expected | {"later.jpg"}
    contents = {images.find_image_path(db, image_id).read_bytes() for image_id in names(db)}
    assert len(contents) == done.registered.added == 6
    found = reasons(db)
    assert set(found) == {r"caf\xe9.txt", "self.jpg", "there", "back", "up/", "pipe.jpg"}
    assert "links" in found["self.jpg"] and "named pipe" in found["pipe.jpg"] and "outside" in found["up/"]
    json.dumps(collect_status(db)).encode()
    for name in names(db).values():
        assert images.find_image(db, unescape_path(name)).name == name, "what a shell hands over"
    again = set_up_project(project, images_folder=folder).registered
    assert (again.added, again.known, len(again.bad)) == (0, 6, 6)


PIECES = (b"\\", b"x", b"5c", b"e9", b"\xe9", b"\xff", b"\\xe9", b"\\x5c", b"a", b"\n", "ë".encode())


@given(st.lists(st.sampled_from(PIECES), min_size=1).map(b"".join))
def test_escaped_path_is_valid_text_and_unescapes_to_the_same_file(name):
    stored = escape_path(os.fsdecode(name))
    assert os.fsencode(unescape_path(stored)) == name
    assert stored.encode().decode() == stored


def test_init_reports_unreadable_folders_and_registers_the_other_images(readable_folder, class_file):
    photos = readable_folder / "photos"
    with without_privileges():
        for number, name in enumerate(("good", "locked", "entered", "listed")):
            draw(photos / name / "one.jpg", seed=number)
        project = readable_folder / "project"
        set_up_project(project, images_folder=photos)
        for name, rights in (("locked", 0o000), ("entered", 0o100), ("listed", 0o400)):
            (photos / name).chmod(rights)
        (photos / "good" / "more.jpg").write_bytes(draw(readable_folder / "more.jpg", seed=9).read_bytes())
        done = set_up_project(project, images_folder=photos).registered
        fresh = set_up_project(readable_folder / "other", images_folder=photos).registered
        said = {one.path: one.reason for one in fresh.bad}
        with pytest.raises(AnnotatorError, match="may not be read"):
            set_up_project(readable_folder / "third", images_folder=photos / "entered")
    assert said["entered/"] == "a folder that may be entered but not listed"
    assert said["listed/"] == "a folder that may be listed but not entered"
    assert "cannot be read" in said["locked/"]
    assert (fresh.added, done.added) == (2, 1)
    assert done.known == 2, "a file in a folder that cannot be listed is found by the name it had"
    assert [one.path for one in done.missing] == ["listed/one.jpg", "locked/one.jpg"]
    with without_privileges():
        for name in ("locked", "entered", "listed"):
            (photos / name).chmod(0o700)
        back = set_up_project(project, images_folder=photos).registered
        assert (back.added, back.bad, images.count_missing(Database(project))) == (0, [], 0)


def test_init_summarizes_skipped_links_by_reason(annotator, photos, tmp_path):
    links = tmp_path / "links"
    draw(links / "own.jpg", seed=50)
    for path in sorted(photos.glob("*.jpg")):
        (links / path.name).symlink_to(path)
    (links / "notes.txt").write_text("x")
    said = annotator("init", "project", "--images", "links").stdout
    assert "1 image added" in said and "24 files skipped" in said
    assert "23 skipped: a link that leads out of the image folder\n      00.jpg, 01.jpg, 02.jpg" in said
    assert "1 skipped: not an image file" in said
    found = json.loads(annotator("status", "project", "--json").stdout)["files_kept_out_by_reason"]
    assert [(one["files"], one["example"]) for one in found] == [(23, "00.jpg"), (1, "notes.txt")]


def test_init_creates_no_project_without_a_usable_image_and_reports_every_reason(tmp_path, photos):
    (tmp_path / "links").mkdir()
    for path in sorted(photos.glob("*.jpg")):
        (tmp_path / "links" / path.name).symlink_to(path)
    (tmp_path / "links" / "torn.jpg").touch()
    with pytest.raises(AnnotatorError) as told:
        set_up_project(tmp_path / "project", images_folder=tmp_path / "links")
    assert "23 files skipped: a link that leads out of the image folder" in str(told.value)
    assert "1 file skipped: empty file" in str(told.value)
    assert not (tmp_path / "project").exists()


def test_terminal_output_escapes_control_characters_in_names(annotator, photos):
    draw(photos / "red\x1b[31m\nkept out.jpg", seed=60)
    (photos / "torn\x1b]0;title\x07\r.jpg").write_bytes(b"")
    (photos / raw(b"torn\xe9\xc2\x9b.jpg")).write_bytes(b"")
    (photos.parent / "labels.csv").write_text('image,labels\n00.jpg,"fox"\n')
    said = annotator("init", "project", "--images", "photos", "--labels", "labels.csv").stdout
    assert r"torn\x1b]0;title\x07\r.jpg" in said
    assert r"torn\xe9\x9b.jpg" in said
    said += annotator("status", "project").stdout
    said += annotator("decide", "project", "\x1b]0;no image\x07", "fox", "present", code=1).stderr
    said += annotator("decide", "project", "red\x1b[31m\nkept out.jpg", "fox", "present").stdout
    assert not set(said) & {"\x1b", "\x07", "\r", "\x9b"}
    assert r"red\x1b[31m\nkept out.jpg" in said


def moved(folder: Path, *pairs: tuple[str, str]) -> None:
    for old, _ in pairs:
        (folder / old).rename(folder / f"{old}.moving")
    for old, new in pairs:
        (folder / new).parent.mkdir(exist_ok=True)
        (folder / f"{old}.moving").rename(folder / new)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pairs", "count"),
    [
        ([("00.jpg", "renamed.jpg")], 1),
        ([("00.jpg", "sub/00.jpg")], 1),
        ([("00.jpg", "01.jpg"), ("01.jpg", "00.jpg")], 2),
        ([("00.jpg", "01.jpg"), ("01.jpg", "02.jpg"), ("02.jpg", "03.jpg"), ("03.jpg", "00.jpg")], 4),
        ([("00.jpg", "01.jpg"), ("01.jpg", "new.jpg")], 2),
    ],
)
def test_renamed_or_moved_file_keeps_its_image_under_the_new_name(project, photos, pairs, count):
    db = Database(project)
    ids = {name: image_id for image_id, name in names(db).items()}
    moved(photos, *pairs)
    found = set_up_project(project, images_folder=photos).registered
    assert (found.added, found.moved, found.copies, found.missing) == (0, count, 0, [])
    for old, new in pairs:
        assert names(db)[ids[old]] == new
        assert images.find_image_path(db, ids[old]) == photos / new
        assert images.load_ids_by_name(db)[new] == images.find_image(db, new).id == ids[old]
    for name in {old for old, _ in pairs} - {new for _, new in pairs}:
        assert images.load_ids_by_name(db)[name] == images.find_image(db, name).id == ids[name], (
            "the old name still finds"
        )
    with open_data_set(db) as data:
        listed = {image.name for block in data.view.blocks() for image in block.images}
    assert listed == set(names(db).values())
    assert set_up_project(project, images_folder=photos).registered.known == 24


def test_moved_folder_and_file_moved_to_another_folder_keep_their_images(project, photos, tmp_path):
    db = Database(project)
    before = names(db)
    photos.rename(tmp_path / "elsewhere")
    found = set_up_project(project, images_folder=tmp_path / "elsewhere").registered
    assert (found.added, found.moved, found.copies, found.missing) == (0, 24, 0, [])
    assert names(db) == before
    draw(tmp_path / "second" / "own.jpg", seed=80)
    (tmp_path / "elsewhere" / "00.jpg").rename(tmp_path / "second" / "zero.jpg")
    found = set_up_project(project, images_folder=tmp_path / "second").registered
    assert (found.added, found.moved) == (1, 1)
    assert names(db)[images.find_image(db, "00.jpg").id] == "zero.jpg"


def test_deleted_file_is_reported_missing_until_it_returns(project, photos, tmp_path, annotator):
    db = Database(project)
    image_id = images.find_image(db, "03.jpg").id
    (photos / "03.jpg").rename(tmp_path / "kept.jpg")
    (photos / "04.jpg").unlink()
    said = annotator("init", "project", "--images", "photos").stdout
    assert "2 missing" in said and "03.jpg, 04.jpg" in said
    assert images.load_missing_reasons(db).keys() == {image_id, image_id + 1}
    found = collect_status(db)
    assert (found["images_missing_in_all"], len(found["images_missing"])) == (2, 2)
    assert "2 images cannot be shown" in annotator("status", "project").stdout
    (tmp_path / "kept.jpg").rename(photos / "back.jpg")
    set_up_project(project, images_folder=photos)
    assert images.load_missing_reasons(db).keys() == {image_id + 1}
    assert names(db)[image_id] == "back.jpg"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_export_marks_missing_images_and_keeps_their_labels(project, photos, tmp_path, kind):
    (tmp_path / "labels.csv").write_text("image,labels\n03.jpg,fox\n05.jpg,fox\n")
    set_up_project(project, images_folder=None, label_file=tmp_path / "labels.csv")
    db = Database(project)
    _, before = export_data_set(db, tmp_path / f"before.{kind}", kind)
    assert "missing" not in before[0].read_text() + (before[1].read_text() if kind == "csv" else "")
    (photos / "03.jpg").unlink()
    set_up_project(project, images_folder=photos)
    _, written = export_data_set(db, tmp_path / f"after.{kind}", kind)
    if kind == "csv":
        rows = list(csv.DictReader(written[1].open()))
        assert [(row["image"], row["missing"]) for row in rows] == [("03.jpg", GONE_PROBLEM), ("05.jpg", "")]
    else:
        rows = [json.loads(line) for line in written[0].read_text().splitlines()]
        assert [(row["image"], row["missing"]) for row in rows if "missing" in row] == [("03.jpg", GONE_PROBLEM)]
        assert rows[3]["labels"]["fox"] == 1
    card = next(path for path in written if path.name.endswith(".card.json"))
    assert json.loads(card.read_text())["images_missing"] == [{"image": "03.jpg", "reason": GONE_PROBLEM}]
    assert "1 image is missing" in card.with_suffix(".md").read_text()


def test_worker_detects_deleted_and_returned_files_but_ignores_an_unmounted_disk(project, photos, tmp_path):
    db = Database(project)
    look = MissingFileWatcher(db)
    (photos / "03.jpg").rename(tmp_path / "away.jpg")
    (photos / "deep" / "23.png").unlink()
    (photos / "deep" / "23.png").symlink_to("nowhere")
    images.mark_problem(db, 1, "truncated: 12 bytes are missing")
    with pytest.raises(AnnotatorError):
        browser_copies.find_ready_file(db, images.find_image(db, "03.jpg").id, browser_copies.THUMB)
    look.check_all()
    assert images.group_by_reason(images.load_missing_images(db)) == {
        GONE_PROBLEM: ["03.jpg", "deep/23.png"],
        "truncated": ["00.jpg"],
    }
    (tmp_path / "away.jpg").rename(photos / "03.jpg")
    look.check_all()
    assert [one.path for one in images.load_missing_images(db)] == ["00.jpg", "deep/23.png"]
    photos.rename(tmp_path / "unmounted")
    look.check_all()
    assert images.count_missing(db) == 2


def test_previously_filled_but_now_empty_folder_is_treated_as_an_unmounted_disk(project, photos):
    photos.rename(photos.parent / "unmounted")
    photos.mkdir()
    with pytest.raises(AnnotatorError, match="Is its disk mounted"):
        set_up_project(project, images_folder=photos)
    assert images.count_missing(Database(project)) == 0


def replace_silently(place: Path, new: Path) -> None:
    """Another content of the same size and time, as a program that keeps times would write it."""
    facts = place.stat()
    data = new.read_bytes()
    place.write_bytes(data[: facts.st_size].ljust(facts.st_size, b"\0"))
    os.utime(place, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (place.stat().st_size, place.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)


def test_file_replaced_with_equal_size_and_time_is_detected_and_not_shown(project, photos, tmp_path):
    db = Database(project)
    replace_silently(photos / "00.jpg", draw(tmp_path / "other.jpg", seed=99))
    with pytest.raises(AnnotatorError, match="has changed since it was registered"):
        browser_copies.find_ready_file(db, 1, browser_copies.THUMB)
    assert "has changed" in images.load_missing_reasons(db)[1]
    assert set_up_project(project, images_folder=photos).registered.known == 23


def test_file_with_changed_timestamps_but_equal_content_keeps_its_image(project, photos):
    db = Database(project)
    (photos / "00.jpg").chmod(0o600)
    before = db.value("SELECT stamp FROM file WHERE image_id = 1")
    assert images.find_image_path(db, 1) == photos / "00.jpg"
    after = db.value("SELECT stamp FROM file WHERE image_id = 1")
    assert after not in ("", before)
    os.utime(photos / "01.jpg", ns=(0, 0))
    assert set_up_project(project, images_folder=photos).registered.known == 24
    assert db.value("SELECT modified_ns FROM file WHERE path = '01.jpg'") == 0


@pytest.mark.parametrize("become", ["folder", "pipe", "link to itself", "link outside", "gone"])
def test_file_that_became_a_folder_pipe_or_link_is_reported_as_missing(project, photos, become):
    db, place = Database(project), photos / "00.jpg"
    place.unlink()
    if become == "folder":
        place.mkdir()
    elif become == "pipe":
        os.mkfifo(place)
    elif become == "link to itself":
        place.symlink_to(place)
    elif become == "link outside":
        place.symlink_to("/etc/hostname")
    for kind in (browser_copies.THUMB, browser_copies.DISPLAY):
        with pytest.raises(AnnotatorError):
            browser_copies.find_ready_file(db, 1, kind)
    assert images.load_missing_reasons(db)[1]
    assert [one.path for one in set_up_project(project, images_folder=photos).registered.missing] in (["00.jpg"], [])
    assert 1 in images.load_missing_reasons(db)


def test_label_file_may_name_a_duplicate_file_of_a_registered_image(project, photos, tmp_path):
    shutil.copy(photos / "00.jpg", photos / "1707.jpg")
    path = tmp_path / "labels.csv"
    path.write_text("image,class,state\n00.jpg,fox,present\n1707.jpg,fox,present\n1707.jpg,deer,absent\n")
    done = set_up_project(project, images_folder=photos, label_file=path)
    assert (done.registered.copies, done.labels_added, done.labels_known) == (1, 2, 0)


@pytest.mark.parametrize("new", [False, True])
def test_label_file_with_conflicting_labels_for_two_files_of_equal_content_is_refused(
    project, photos, tmp_path, class_file, new
):
    shutil.copy(photos / "00.jpg", photos / "1707.jpg")
    path = tmp_path / "labels.csv"
    path.write_text("image,class,state\n00.jpg,fox,present\n01.jpg,deer,present\n1707.jpg,fox,absent\n")
    target = tmp_path / "fresh" if new else project
    with pytest.raises(AnnotatorError) as told:
        set_up_project(target, images_folder=photos, class_file=class_file, label_file=path)
    assert "line 4: 'fox' is absent on '1707.jpg', but present on '00.jpg' (line 2)" in str(told.value)
    if new:
        assert not target.exists()
    else:
        assert collect_status(Database(project))["labels"] == {"present": 0, "absent": 0, "unsure": 0}


def test_invalid_class_names_are_refused_before_a_project_is_created(tmp_path, photos):
    path = tmp_path / "labels.csv"
    odd = ["image", "a|b", "bell\x07", "two\nlines", "x" * 300, ""]
    path.write_text("image,class,state\n" + "".join(f'00.jpg,"{name}",present\n' for name in [*odd, "fox"]))
    with pytest.raises(AnnotatorError) as told:
        set_up_project(tmp_path / "project", images_folder=photos, label_file=path)
    for line in (2, 3, 4, 5, 7, 8):  # "two\nlines" ends in line 6
        assert f"line {line}: " in str(told.value)
    assert "'fox'" not in str(told.value)
    assert not (tmp_path / "project").exists()


def test_benchmark_truth_file_may_name_duplicate_files_and_skipped_files(photos, tmp_path):
    from annotator.benchmark.effort.effort_measurement import load_present_labels

    shutil.copy(photos / "00.jpg", photos / "1707.jpg")
    (photos / "torn.jpg").write_bytes(b"")
    set_up_project(tmp_path / "project", images_folder=photos)
    db = Database(tmp_path / "project")
    path = tmp_path / "truth.csv"
    path.write_text("image,labels\n00.jpg,fox\n1707.jpg,fox|deer\ntorn.jpg,fox\n23.png,deer\n")
    ids = images.add_short_names(images.load_ids_by_name(db))
    given = {(ids[label.image], label.class_name) for label in load_present_labels(db, ids, path)}
    assert given == {(ids["00.jpg"], "fox"), (ids["00.jpg"], "deer"), (ids["deep/23.png"], "deer")}


def test_file_registered_without_a_stamp_by_an_older_version_gets_one_when_read(project, photos):
    db = Database(project)
    with db.writing() as sql:
        sql.execute("UPDATE file SET stamp = ''")
    assert images.find_image_path(db, 1) == photos / "00.jpg"
    assert set_up_project(project, images_folder=photos).registered.known == 24
    assert db.value("SELECT count(*) FROM file WHERE stamp = ''") == 0

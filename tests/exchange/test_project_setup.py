"""From a folder to a project: every content once, every bad file with its reason, nothing half done."""

import os
import shutil
import struct
import zlib

import pytest
from conftest import draw

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.records import Decision
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, project_counts


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims this size and holds nothing of it: enough to fill the memory of whoever believes it."""
    facts = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(b"\0" * 1000)
    chunks = [struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in (facts, data)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def reasons(db: Database) -> dict[str, str]:
    return {one.path: one.reason for one in images.load_rejected_files(db)}


def test_repeated_setup_registers_no_image_twice(project, photos):
    again = set_up_project(project, images_folder=photos).registered
    assert (again.added, again.known, again.bad) == (0, 24, [])
    assert len(images.load_all_images(Database(project))) == 24


def test_copied_and_moved_files_stay_the_same_image(project, photos):
    db = Database(project)
    decisions.save(db, [Decision("0123456789", "label", "Ann", "click", image_id=1, class_id=1, state=1)])
    before = images.load_images(db, [1])[1]
    shutil.copy(photos / before.name, photos / "copy.jpg")
    (photos / before.name).rename(photos / "moved.jpg")
    found = set_up_project(project, images_folder=photos).registered
    assert (found.added, found.moved, found.copies, found.missing) == (0, 1, 1, [])
    assert images.find_image_path(db, 1).name in ("copy.jpg", "moved.jpg")
    for name in (before.name, "copy.jpg", "moved.jpg"):
        assert images.find_image(db, name).id == images.load_ids_by_name(db)[name] == 1, name


def test_changed_file_becomes_a_new_image_without_the_old_decisions(project, photos):
    db = Database(project)
    one = images.load_images(db, [1])[1]
    decisions.save(db, [Decision("0123456789", "label", "Ann", "click", image_id=1, class_id=1, state=1)])
    draw(photos / one.name, ("deer",), seed=999)
    with pytest.raises(AnnotatorError, match="has changed since it was registered"):
        images.find_image_path(db, 1)
    assert set_up_project(project, images_folder=photos).registered.added == 1
    newest = images.load_all_images(db)[-1]
    assert newest.sha256 != one.sha256
    assert newest.name == one.name, "an export names the picture that the file holds now"
    assert images.load_images(db, [1])[1].name == f"00.jpg#{one.sha256[:12]}"
    assert images.load_missing_reasons(db).keys() == {1}
    assert decisions.load_labels(db, [newest.id]) == []
    assert len(decisions.load_labels(db, [1])) == 1


def test_invalid_files_are_not_registered_and_get_a_reason(tmp_path, class_file):
    folder = tmp_path / "mixed"
    good = draw(folder / "good.jpg", ("fox",), seed=1)
    (folder / "empty.jpg").touch()
    (folder / "letter.png").write_text("Dear Ann, this is not an image.")
    (folder / "cut.jpg").write_bytes(good.read_bytes()[:900])
    (folder / "notes.txt").write_text("heron near the lake")
    (folder / "bomb.png").write_bytes(png_header(30_000, 30_000))
    (folder / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    outside = draw(tmp_path / "outside.jpg", seed=2)
    (folder / "outside.jpg").symlink_to(outside)
    done = set_up_project(tmp_path / "project", images_folder=folder, class_file=class_file)
    assert done.registered.added == 1
    found = reasons(Database(tmp_path / "project"))
    assert set(found) == {
        "empty.jpg", "letter.png", "cut.jpg", "notes.txt", "bomb.png", "gone.jpg", "outside.jpg",
    }  # fmt: skip
    assert "empty" in found["empty.jpg"]
    assert "not an image" in found["letter.png"]
    assert "truncated" in found["cut.jpg"]
    assert "30,000" in found["bomb.png"]
    assert "out of the image folder" in found["outside.jpg"]


def test_a_project_inside_the_image_folder_does_not_register_its_own_files(photos, class_file):
    project = photos / "project"
    set_up_project(project, images_folder=photos, class_file=class_file)
    draw(project / "thumbs" / "1.jpg", seed=77)
    assert set_up_project(project, images_folder=photos).registered.added == 0


def test_class_list_errors_are_reported_together_with_their_lines_and_create_nothing(tmp_path, photos):
    path = tmp_path / "classes.txt"
    path.write_text(f"fox\n\nheron\nfox\na|b\nimage\nowl\x0bbat\nhen\t{'x' * 2001}\n")
    with pytest.raises(AnnotatorError) as told:
        set_up_project(tmp_path / "project", images_folder=photos, class_file=path)
    text = str(told.value)
    for expected in ("line 2: blank", "line 4: 'fox' again (first in line 1)", "line 5", "line 6", "line 7", "line 8"):
        assert expected in text
    assert not (tmp_path / "project").exists()


def test_label_file_errors_are_reported_together_with_their_lines_and_change_nothing(project, photos, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        "image,class,state\n00.jpg,fox,present\nnope.jpg,fox,present\n01.jpg,foxx,absent\n02.jpg,fox,maybe\n"
    )
    with pytest.raises(AnnotatorError) as told:
        set_up_project(project, images_folder=photos, label_file=path)
    text = str(told.value)
    assert "line 3: no image is called 'nope.jpg'" in text
    assert "line 4: no class is called 'foxx'. Did you mean 'fox'?" in text
    assert "line 5: state 'maybe'" in text
    assert project_counts.count_labels_by_state(Database(project)) == {"present": 0, "absent": 0, "unsure": 0}


def test_repeated_label_import_adds_nothing_and_keeps_answers_given_since(project, photos, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("image,labels,split\n00.jpg,fox|heron,train\n23.png,deer,test\n01.jpg,,train\n")
    first = set_up_project(project, images_folder=None, label_file=path)
    assert (first.labels_added, first.labels_known) == (3, 0)
    db = Database(project)
    image = images.find_image(db, "00.jpg")
    fox = classes.find_class(db, "fox")
    decisions.save(db, [Decision("0123456789", "label", "Ann", "click", image_id=image.id, class_id=fox.id, state=-1)])
    again = set_up_project(project, images_folder=None, label_file=path)
    assert (again.labels_added, again.labels_known) == (0, 3)
    assert project_counts.count_labels_by_state(db) == {"present": 2, "absent": 1, "unsure": 0}


def test_classes_are_taken_from_the_label_file_without_a_class_list(tmp_path, photos):
    path = tmp_path / "labels.csv"
    path.write_text("image,class,state\n00.jpg,owl,present\n01.jpg,bat,unsure\n")
    set_up_project(tmp_path / "project", images_folder=photos, label_file=path)
    assert [one.name for one in classes.load_active_classes(Database(tmp_path / "project"))] == ["bat", "owl"]


@pytest.mark.parametrize(
    ("header", "expected"),
    [("when,weather\n", "has the columns when, weather"), ("", "is empty"), ('image,labels\n"a', "is no CSV")],
)
def test_invalid_label_file_is_refused_with_the_reason(project, tmp_path, header, expected):
    path = tmp_path / "labels.csv"
    path.write_text(header)
    with pytest.raises(AnnotatorError, match=expected):
        set_up_project(project, images_folder=None, label_file=path)


def test_invalid_image_folder_is_refused_and_creates_no_project(tmp_path, class_file):
    (tmp_path / "empty").mkdir()
    for folder, expected in (
        (tmp_path / "nowhere", "no folder"),
        (class_file, "is a file"),
        (tmp_path / "empty", "No image"),
    ):
        with pytest.raises(AnnotatorError, match=expected):
            set_up_project(tmp_path / "project", images_folder=folder)
        assert not (tmp_path / "project").exists()


def test_folder_with_other_files_is_not_turned_into_a_project(photos):
    with pytest.raises(AnnotatorError, match="holds other things already"):
        set_up_project(photos, images_folder=photos)
    assert not (photos / "project.db").exists()


def test_image_with_a_missing_file_is_not_offered_for_labeling_until_the_file_returns(project, photos):
    db = Database(project)
    one = images.load_images(db, [1])[1]
    (photos / one.name).rename(photos.parent / "elsewhere.jpg")
    with pytest.raises(AnnotatorError, match="cannot be opened"):
        images.find_image_path(db, 1)
    images.mark_problem(db, 1, "gone")
    assert 1 not in images.load_ids_in_working_order(db)
    (photos.parent / "elsewhere.jpg").rename(photos / one.name)
    set_up_project(project, images_folder=photos)
    assert 1 in images.load_ids_in_working_order(db)


def test_ambiguous_image_name_is_refused_with_the_candidates(tmp_path, class_file):
    for number, folder in enumerate(("a", "b")):
        draw(tmp_path / "photos" / folder / "same.jpg", seed=number)
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos", class_file=class_file)
    db = Database(tmp_path / "project")
    with pytest.raises(AnnotatorError, match=r"could be any of 2 images: a/same\.jpg, b/same\.jpg"):
        images.find_image(db, "same.jpg")
    assert images.find_image(db, f"b{os.sep}same.jpg").name == "b/same.jpg"
    with pytest.raises(AnnotatorError, match=r"Did you mean 'a/same\.jpg'"):
        images.find_image(db, "a/samee.jpg")


def test_class_similar_to_an_existing_one_is_added_with_a_warning(project, tmp_path):
    path = tmp_path / "more.txt"
    path.write_text("fox\nFox\nowl\n")
    done = set_up_project(project, images_folder=None, class_file=path)
    assert done.classes_added == ["Fox", "owl"]
    assert done.class_warnings == ["'Fox' looks like 'fox'. Is it the same class?"]


@pytest.mark.parametrize(
    ("flag", "expected"), [("split", ["fox", "deer", "hare"]), ("keep", ["fox, deer", "hare"])], ids=["split", "keep"]
)
def test_init_requires_the_commas_option_for_a_class_list_with_commas(annotator, photos, tmp_path, flag, expected):
    (tmp_path / "list.txt").write_text("fox, deer\nhare\n")
    command = ("init", "birds", "--images", photos, "--classes", "list.txt")
    refused = annotator(*command, code=1)
    for words in (
        "'fox, deer' in list.txt may be 2 classes or one",
        "--commas split makes it 'fox', 'deer'",
        "--commas keep",
    ):
        assert words in " ".join((refused.stdout + refused.stderr).split())
    assert not (tmp_path / "birds").exists()
    annotator(*command, "--commas", flag)
    assert [one.name for one in classes.load_active_classes(Database(tmp_path / "birds"))] == expected


def test_class_names_with_commas_are_accepted_with_a_description_or_when_existing(photos, tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("Fox, red\twith a white tip\nfocal length 1,4\n")
    for _ in range(2):
        set_up_project(tmp_path / "birds", images_folder=photos, class_file=path)
    path.write_text("Fox, red\n")  # known by now
    set_up_project(tmp_path / "birds", images_folder=None, class_file=path)
    assert [one.name for one in classes.load_active_classes(Database(tmp_path / "birds"))] == [
        "Fox, red",
        "focal length 1,4",
    ]


def test_split_class_command_requires_the_commas_option_for_names_with_commas(annotator, db):
    refused = annotator("classes", "split", db.paths.project, "fox", "cub, vixen", code=1)
    assert "'cub, vixen' in the command may be 2 classes or one" in " ".join((refused.stdout + refused.stderr).split())
    assert [one.name for one in classes.load_active_classes(db)] == ["fox", "heron", "deer"]
    annotator("classes", "split", db.paths.project, "fox", "cub, vixen", "--commas", "split")
    annotator("classes", "split", db.paths.project, "fox", "Fox, red", "--commas", "keep")
    assert [one.name for one in classes.load_active_classes(db)][3:] == ["cub", "vixen", "Fox, red"]

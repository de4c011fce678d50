"""What servers and systems leave beside people's files is left out of folders, archives and addresses, and counted."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import draw

from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.project_setup import add_folder, set_up_project
from annotator.exchange.sources.fetch_folder import is_wanted_file
from annotator.exchange.sources.urls import is_downloadable
from annotator.records import Decision
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.locations.listing import RemoteFile
from annotator.store.locations.staged_listing import StagedListing
from annotator.store.pictures.files import list_files
from annotator.store.pictures.leftovers import find_leftover_part

LEFTOVERS = {
    "@eaDir/x.jpg/SYNOPHOTO_THUMB_M.jpg": "@eaDir",
    "deep/@eaDir/y.jpg/SYNOPHOTO_THUMB_B.jpg": "@eaDir",
    "#recycle/deleted.jpg": "#recycle",
    "#snapshot/GMT-2024/x.jpg": "#snapshot",
    "$RECYCLE.BIN/S-1-5/$R1.jpg": "$RECYCLE.BIN",
    "System Volume Information/x.jpg": "System Volume Information",
    ".thumbnails/1.jpg": ".thumbnails",
    "__MACOSX/._x.jpg": "__MACOSX",
    ".Trash-1000/files/x.jpg": ".Trash-1000",
    "lost+found/1.jpg": "lost+found",
    ".AppleDouble/x.jpg": ".AppleDouble",
    "._x.jpg": "._*",
    "deep/Thumbs.db": "Thumbs.db",
}
OWN = ("x.jpg", "deep/y.jpg", "recycle/z.jpg", "eaDir.jpg", "thumbnails/t.jpg", "my #recycle/r.jpg")
COUNTED = (
    "13 files in #recycle, #snapshot, $RECYCLE.BIN, ._*, .AppleDouble, .thumbnails, .Trash-1000, @eaDir, __MACOSX, "
    "lost+found, System Volume Information, Thumbs.db left out: leftovers of a server or a system."
)


@pytest.fixture
def share(tmp_path) -> Path:
    """A folder as it lies on a server, with images of different contents everywhere."""
    for number, name in enumerate((*OWN, *LEFTOVERS)):
        path = tmp_path / "share" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(tmp_path / "one.jpg", seed=number).rename(path)
    return tmp_path / "share"


def names(project: Path) -> set[str]:
    return {row[0] for row in Database(project).tuples("SELECT name FROM image")}


@pytest.mark.parametrize("path", LEFTOVERS)
def test_system_and_trash_file_paths_are_recognized_in_any_case_and_with_any_separator(path):
    for written in (path, path.upper(), path.replace("/", "\\")):
        assert find_leftover_part(written).casefold() == LEFTOVERS[path].casefold()
        assert not is_wanted_file(written) and not is_downloadable(written)


@pytest.mark.parametrize("path", OWN)
def test_path_that_only_resembles_a_system_or_trash_file_is_kept(path):
    assert find_leftover_part(path) == "" and is_wanted_file(path) and is_downloadable(path)


def test_folder_import_skips_and_counts_system_and_trash_files(tmp_path, share, annotator):
    said = annotator("import", "one", share, "--yes").stdout
    assert COUNTED in said and "6 images added" in said
    said = annotator("init", "two", "--images", share).stdout
    assert COUNTED in said and "6 images added" in said and "0 files skipped" in said
    assert names(tmp_path / "one") == names(tmp_path / "two") == set(OWN)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_archive_import_skips_and_counts_system_and_trash_files(tmp_path, share, kind, annotator):
    archive = tmp_path / f"share.{kind}"
    paths = [path for path in sorted(share.rglob("*")) if path.is_file()]
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as file:
            for path in paths:
                file.write(path, f"share/{path.relative_to(share)}")
    else:
        with tarfile.open(archive, "w") as file:
            for path in paths:
                file.add(path, f"share/{path.relative_to(share)}")
    said = annotator("import", "one", archive, "--yes").stdout
    assert COUNTED in said and "6 images added" in said
    assert names(tmp_path / "one") == set(OWN)


def test_remote_listing_skips_system_and_trash_files_and_keeps_their_count(tmp_path):
    staged = StagedListing(tmp_path / "listing.db")
    remotes = [RemoteFile(name, name, 10, "tag") for name in (*OWN, *LEFTOVERS, "notes.md", "v.mp4")]
    staged.add(remotes)
    again = StagedListing(tmp_path / "listing.db")
    assert again.count() == len(OWN) and again.passed_over == 1
    assert again.left_out.format_sentences()[-1] == COUNTED and "1 .mp4" in again.left_out.format_sentences()[0]
    known = StagedListing(tmp_path / "other.db")
    known.add(remotes, known=["#recycle/deleted.jpg"])
    assert known.count() == len(OWN) + 1, "what is registered stays"


def test_project_keeps_system_and_trash_files_registered_by_older_versions(tmp_path, share, monkeypatch):
    from annotator.store.pictures import files

    with monkeypatch.context() as patch:  # as a version that did not know them
        patch.setattr(files, "find_leftover_part", lambda path: "")
        patch.setattr(files, "is_leftover_folder", lambda name: False)
        set_up_project(tmp_path / "project", images_folder=share)
    db = Database(tmp_path / "project")
    kept = {"@eaDir/x.jpg/SYNOPHOTO_THUMB_M.jpg", "#recycle/deleted.jpg", "$RECYCLE.BIN/S-1-5/$R1.jpg"}
    assert kept <= names(tmp_path / "project")
    classes.add_classes(db, [("fox", "")])
    fox = classes.load_classes_by_name(db)["fox"].id
    image_id = db.value("SELECT id FROM image WHERE name = '#recycle/deleted.jpg'")
    given = Decision(
        uuid="one", action="label", image_id=image_id, class_id=fox, state=1, source="click", annotator="Ann"
    )
    decisions.save(db, [given])
    before = names(tmp_path / "project")
    draw(share / "@eaDir" / "new.jpg", seed=99)
    for again in (
        lambda: add_folder(db, share),
        lambda: set_up_project(tmp_path / "project", images_folder=share).registered,
    ):
        done = again()
        assert (done.added, done.missing) == (0, [])
        assert names(tmp_path / "project") == before
    with prepare_import(tmp_path / "project", share, ImportOptions(), "Ann") as plan:
        assert not any("gone" in sentence for sentence in plan.sentences)
        assert "@eaDir" in " ".join(plan.sentences)
    assert [label.state for label in decisions.load_labels(db, [image_id])] == [1]


def test_system_and_trash_folders_do_not_become_classes_or_images(tmp_path):
    photos = tmp_path / "photos"
    for number, name in enumerate(("cat/1.jpg", "dog/2.jpg", "@eaDir/3.jpg", "cat/@eaDir/4.jpg")):
        draw(photos / name, seed=number)
    (photos / "lost+found").mkdir()
    listing = list_files(photos, leave_out=photos / "none")
    assert listing.paths == ["cat/1.jpg", "dog/2.jpg"] and listing.left_out.leftovers == {"@eaDir": 2}
    with prepare_import(tmp_path / "project", photos, ImportOptions("imagefolder"), "Ann") as plan:
        assert sorted(class_.name for class_ in plan.preview.classes) == ["cat", "dog"]


def test_image_listing_leaves_out_a_project_folder_inside_the_image_folder(tmp_path):
    draw(tmp_path / "photos" / "1.jpg", seed=1)
    inside = tmp_path / "photos" / "project"
    inside.mkdir()
    draw(inside / "2.jpg", seed=2)
    assert list_files(tmp_path / "photos", leave_out=inside).paths == ["1.jpg"]


def test_archive_without_images_raises_and_reports_its_contents(tmp_path):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("@eaDir/a.jpg", b"x")
        file.writestr("v.mp4", b"x")
    (tmp_path / "all.zip").write_bytes(content.getvalue())
    with pytest.raises(Exception, match=r"no image and no file of labels(.|\n)*1 .mp4(.|\n)*1 file in @eaDir left out"):
        set_up_project(tmp_path / "project", images_folder=tmp_path / "all.zip")

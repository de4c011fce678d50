"""Images from archives, tables, lists and addresses: wherever they come from, the same images with the same labels.

What is hostile, broken or cut off is an error that names it, and leaves nothing half registered.
"""

import gc
import gzip
import hashlib
import http.server
import io
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import threading
import zipfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from harness.class_pictures import CLASSES, EXPECTED, PICTURES, cells, picture
from harness.short_forms import mark_slow_after

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import webdataset
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.exchange.sources import fetch_source, unpack_limits, urls, zip_directory
from annotator.exchange.sources.fetch_folder import safe_path
from annotator.store.database.database import Database
from annotator.store.disk import fetched_manifest
from annotator.store.images import images
from annotator.store.imports.past_imports import load_imports
from annotator.store.locations import addresses, file_systems, listing, web_servers
from annotator.store.locations.addresses import Address, check_host

MEMBERS = {f"set/{CLASSES[number % 2]}/{number}.png": content for number, content in enumerate(PICTURES)}


def make_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def make_tar(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def make_shards(path: Path) -> Path:
    path.mkdir()
    for shard in range(2):
        members = {}
        for number in range(shard * 3, shard * 3 + 3):
            members |= {f"{number:03}.png": PICTURES[number], f"{number:03}.cls": CLASSES[number % 2].encode()}
        make_tar(path / f"train-{shard:06}.tar", members)
    return path


def hugging_face(path: Path, with_path: bool) -> Path:
    """Saved, or as one Parquet file, by `datasets` itself."""
    import datasets

    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(CLASSES))})
    images = [
        {"bytes": content, "path": f"{number}.png" if with_path else None} for number, content in enumerate(PICTURES)
    ]
    rows = {"image": images, "label": [number % 2 for number in range(len(PICTURES))]}
    data = datasets.Dataset.from_dict(rows, features)
    if path.suffix == ".parquet":
        data.to_parquet(path)
    else:
        data.save_to_disk(path)
    return path


def split_data(path: Path) -> Path:
    """Saved by `datasets`, two splits in which all images have one name."""
    import datasets

    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(CLASSES))})
    images = [{"bytes": content, "path": "same.png"} for content in PICTURES]
    data = datasets.Dataset.from_dict({"image": images, "label": [number % 2 for number in range(6)]}, features)
    datasets.DatasetDict(train=data.select(range(4)), test=data.select(range(4, 6))).save_to_disk(path)
    return path


def folder_zip(path: Path) -> Path:
    """An image folder of Hugging Face, zipped: metadata.jsonl names files and classes."""
    lines = [{"file_name": f"i/{number}.png", "labels": [CLASSES[number % 2]]} for number in range(len(PICTURES))]
    members = {f"i/{number}.png": content for number, content in enumerate(PICTURES)}
    return make_zip(path, members | {"metadata.jsonl": "\n".join(map(json.dumps, lines)).encode()})


LABELED = {
    "zip": lambda folder: make_zip(folder / "a.zip", MEMBERS),
    "zip of metadata.jsonl": lambda folder: folder_zip(folder / "a.zip"),
    "tar": lambda folder: make_tar(folder / "a.tar", MEMBERS),
    "tar.gz": lambda folder: make_tar(folder / "a.tar.gz", MEMBERS, "w:gz"),
    "shards": lambda folder: make_shards(folder / "shards"),
    "one shard": lambda folder: make_shards(folder / "shards").rename(folder / "s"),
    "saved data set": lambda folder: hugging_face(folder / "saved", True),
    "splits": lambda folder: split_data(folder / "splits"),
    "parquet": lambda folder: hugging_face(folder / "a.parquet", True),
    "parquet without names": lambda folder: hugging_face(folder / "a.parquet", False),
}


@pytest.mark.parametrize("kind", mark_slow_after(5, LABELED))
def test_every_source_kind_imports_images_with_labels_and_a_repeat_changes_nothing(kind, annotator, tmp_path):
    source = LABELED[kind](tmp_path)
    annotator("import", "p", source, "--yes")
    assert cells(tmp_path / "p") == EXPECTED
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "p/imported").rglob("*.png")}
    assert len(files) == len(PICTURES)
    said = annotator("import", "p", source, "--yes").stdout
    assert "Nothing was changed. There is nothing new in it." in said
    assert f"{6 + ('metadata' in kind)} as before" in said
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "p/imported").rglob("*.png")} == files
    assert cells(tmp_path / "p") == EXPECTED


@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_path_list_registers_only_the_listed_files_and_copies_none(ending, annotator, tmp_path):
    for name, content in MEMBERS.items():
        file = tmp_path / "far" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    named = sorted(MEMBERS)[:4]
    lines = ["path"] * (ending == "csv") + [str(tmp_path / "far" / named[0]), *(f"far/{name}" for name in named)]
    (tmp_path / f"list.{ending}").write_text("\n".join(lines))
    annotator("init", "p", "--images", f"list.{ending}")
    assert len(cells(tmp_path / "p")) == 4
    assert not (tmp_path / "p/imported").exists()
    (tmp_path / f"list.{ending}").write_text("\n".join([*lines, f"far/{sorted(MEMBERS)[5]}"]))
    assert "1 image added, 4 already there" in annotator("import", "p", f"list.{ending}", "--yes").stdout
    (tmp_path / f"list.{ending}").write_text("far/nothing.png\nfar/set/none.txt\n")
    said = annotator("import", "p", f"list.{ending}", "--yes", code=1).stderr
    assert "line 1: 'far/nothing.png' is no file" in said
    assert "line 2" in said


def test_path_list_read_by_a_page_refuses_hidden_files_and_links_to_them(tmp_path):
    for name in ("shown/a.png", ".keys/b.png", "shown/.c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(PICTURES[0])
    (tmp_path / "link.png").symlink_to(tmp_path / ".keys" / "b.png")
    (tmp_path / "list.txt").write_text("shown/../shown/a.png\n")
    found = fetch_source(tmp_path / "list.txt", tmp_path / "p", may_be_own=False)
    assert found and [paths for _, paths in found.folders] == [["a.png"]]
    hidden = (".keys/b.png", "shown/.c.png", "link.png", str(tmp_path / "shown/../.keys/b.png"))
    (tmp_path / "list.txt").write_text("\n".join(["shown/a.png", *hidden]))
    with pytest.raises(AnnotatorError) as refused:
        fetch_source(tmp_path / "list.txt", tmp_path / "p", may_be_own=False)
    for number in range(2, 6):
        assert f"line {number}: " in str(refused.value) and "pages do not read those" in str(refused.value)
    assert "line 1:" not in str(refused.value)
    assert fetch_source(tmp_path / "list.txt", tmp_path / "p"), "whose machine it is reads them"


@pytest.mark.slow
@pytest.mark.parametrize("order", [("a.jpg", "a.jpg/b.jpg", "A.jpg/c.jpg"), ("a.jpg/b.jpg", "A.jpg/c.jpg", "a.jpg")])
@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_archive_with_a_file_and_a_folder_of_one_name_keeps_both(order, make, annotator, tmp_path):
    path = make(tmp_path / f"a.{make.__name__[-3:]}", {name: PICTURES[number] for number, name in enumerate(order)})
    for _ in range(2):
        said = annotator("import", "p", path, "--dry-run").stdout
    assert "3 as before" in said and "another name" not in said
    annotator("import", "p", path, "--yes")
    found = sorted(
        str(file.relative_to(tmp_path / "p/imported/a"))
        for file in (tmp_path / "p/imported/a").rglob("*.jpg")
        if file.is_file()
    )
    assert len(cells(tmp_path / "p")) == 3 and len(found) == 3 and {"a.jpg~2/b.jpg", "a~2.jpg"} & set(found)


@pytest.mark.slow
def test_sparse_tar_is_refused_and_damaged_tar_headers_raise_no_unexpected_error(annotator, tmp_path):
    shown, chance = make_tar(tmp_path / "whole.tar", {"a.png": PICTURES[0], "a.cls": b"1"}), random.Random(1)
    member = tarfile.TarInfo("zeros.png")
    member.size, member.type = 512, tarfile.GNUTYPE_SPARSE
    pax = tarfile.TarInfo("more.png")
    pax.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "900"}
    for number, sparse in enumerate((member, pax)):
        with tarfile.open(tmp_path / f"sparse{number}.tar", "w", format=tarfile.PAX_FORMAT) as archive:
            archive.addfile(sparse, io.BytesIO(bytes(512)))
        said = annotator("import", "p", f"sparse{number}.tar", "--yes", code=1).stderr
        assert "is a sparse file" in said and "without --sparse" in said, said
    content = shown.read_bytes()
    for number in range(300):
        header = bytearray(content[:512])
        for _ in range(chance.randrange(1, 4)):
            header[chance.randrange(100, 512)] = chance.choice(b"\0 -19xLKSg\xff\x80")
        header[148:156] = b"        "
        header[148:156] = b"%06o\0 " % sum(header)
        (tmp_path / f"{number}.tar").write_bytes(bytes(header) + content[512:])
        with suppress(AnnotatorError):
            fetch_source(tmp_path / f"{number}.tar", tmp_path / "q")
        with suppress(AnnotatorError):
            list(webdataset.read(tmp_path / f"{number}.tar", Problems(), ReadingOptions()).items)


def test_archive_reimport_reports_new_changed_and_missing_members_and_preview_keeps_files(annotator, tmp_path):
    make_zip(tmp_path / "a.zip", {f"{number}.png": PICTURES[number] for number in range(4)})
    said = annotator("import", "p", "a.zip", "--dry-run").stdout
    assert f"Nothing was imported. What was unpacked or downloaded stays in {tmp_path / 'p/imported/a'}" in said
    assert "4 as before" in annotator("import", "p", "a.zip", "--yes").stdout
    make_zip(
        tmp_path / "a.zip", {"1.png": PICTURES[1], "2.png": PICTURES[4], "3.png": PICTURES[3], "5.png": PICTURES[5]}
    )
    for _ in range(2):
        assert "1 changed" in annotator("import", "p", "a.zip", "--dry-run").stdout
        assert (tmp_path / "p/imported/a/2.png").read_bytes() == PICTURES[2]
    said = annotator("import", "p", "a.zip", "--yes").stdout
    assert "1 changed, 3 as before" in said
    assert (tmp_path / "p/imported/a/2.png").read_bytes() == PICTURES[4]
    assert not (tmp_path / "p/imported/a/.changed").exists()
    assert "Nothing was changed" in annotator("import", "p", "a.zip", "--yes").stdout
    make_zip(tmp_path / "a.zip", {f"{number}.png": PICTURES[number] for number in (1, 3, 4, 5)})
    said = annotator("import", "p", "a.zip", "--yes").stdout
    assert "1 new, 3 as before" in said
    assert "2 files are gone from the source, and kept here: '0.png', '2.png'" in said
    digests = {hashlib.sha256(PICTURES[number]).hexdigest() for number in (0, 1, 3, 4, 5)}
    assert cells(tmp_path / "p").keys() == digests  # image 2 is missing: its file holds another picture


def test_images_inside_a_moved_or_copied_project_are_found(annotator, tmp_path):
    make_zip(tmp_path / "a.zip", MEMBERS)
    annotator("import", "p", "a.zip", "--yes")
    (tmp_path / "p").rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "copy")
    for name in ("moved", "copy"):
        db = Database(tmp_path / name)
        assert [folder.path for folder in images.load_folders(db)] == [str(tmp_path / name / "imported/a/set")]
        assert images.find_image_path(db, 1).is_relative_to(tmp_path / name)
    assert "Nothing was changed" in annotator("import", "moved", "a.zip", "--yes").stdout


def test_folder_reimport_reports_missing_and_changed_files(annotator, tmp_path):
    (tmp_path / "far").mkdir()
    for number in range(4):
        (tmp_path / f"far/{number}.png").write_bytes(PICTURES[number])
    annotator("import", "p", "far", "--yes")
    (tmp_path / "far/0.png").unlink()
    (tmp_path / "far/1.png").write_bytes(PICTURES[5])
    said = annotator("import", "p", "far", "--dry-run").stdout
    assert "1 file of" in said
    assert "'0.png'" in said
    assert "may have changed: '1.png'" in said
    said = annotator("import", "p", "far", "--yes").stdout
    assert "1 image added, 2 already there" in said
    assert "2 missing" in said


def with_link(kind: str, path: Path, type_: bytes) -> Path:
    """An archive of one image, and a link or device."""
    if kind == "zip":
        member = zipfile.ZipInfo("evil.png")
        member.create_system, member.external_attr = (
            3,
            ((stat.S_IFLNK if type_ in (b"1", b"2") else stat.S_IFCHR) << 16),
        )
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("good.png", PICTURES[0])
            archive.writestr(member, "/etc/passwd")
        return path
    with tarfile.open(path, "w") as archive:
        good, member = tarfile.TarInfo("good.png"), tarfile.TarInfo("evil.png")
        good.size, member.type, member.linkname = len(PICTURES[0]), type_, "/etc/passwd"
        archive.addfile(good, io.BytesIO(PICTURES[0]))
        archive.addfile(member)
    return path


OUTSIDE = ["../evil.png", "a/../../evil.png", "/tmp/evil.png", "..\\evil.png", "C:\\evil.png", "\\\\host\\evil.png"]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_archive_import_refuses_links_device_files_and_paths_outside_the_folder(kind, annotator, tmp_path):
    make = make_zip if kind == "zip" else make_tar
    source = make(tmp_path / f"a.{kind}", {"good.png": PICTURES[0]} | dict.fromkeys(OUTSIDE, PICTURES[1]))
    said = annotator("import", "p", source, "--yes", code=1).stderr
    assert said.count("evil.png") == len(OUTSIDE)
    for number, type_ in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE)):
        source = with_link(kind, tmp_path / f"{number}.{kind}", type_)
        assert "evil.png' is a" in annotator("import", "p", source, "--yes", code=1).stderr
    assert not (tmp_path / "p/project.db").exists()
    assert not list(tmp_path.rglob("evil.png"))
    assert not Path("/tmp/evil.png").exists()


def test_unusable_archives_and_missing_cloud_packages_are_reported(tmp_path, monkeypatch):
    inner = make_zip(tmp_path / "inner.zip", MEMBERS).read_bytes()
    make_zip(tmp_path / "nested.zip", {"a/inner.zip": inner})
    make_tar(tmp_path / "nested.tar", {"a/inner.zip": inner})
    make_zip(tmp_path / "empty.zip", {})
    locked = bytearray(make_zip(tmp_path / "locked.zip", {"a.png": PICTURES[0]}).read_bytes())
    locked[locked.index(b"PK\1\2") + 8] |= 1  # the flag of an encrypted member
    (tmp_path / "locked.zip").write_bytes(locked)
    for package in ("s3fs", "gcsfs"):
        monkeypatch.setitem(sys.modules, package, None)
    for source, said in {
        "nested.zip": r"no image and no file of labels in .*nested.zip \(1 other, such as 'a/inner.zip'\)",
        "nested.tar": r"no image and no file of labels in .*nested.tar \(1 other, such as 'a/inner.zip'\)",
        "empty.zip": "no image and no file of labels in .*empty.zip",
        "locked.zip": "'a.png' is encrypted; unpack the archive yourself",
        "s3://bucket/x": r"the package s3fs. Install it with: pip install 'multilabel-annotator\[cloud\]' s3fs",
        "gs://bucket/x": r"the package gcsfs. Install it with: pip install 'multilabel-annotator\[cloud\]' gcsfs",
    }.items():
        with pytest.raises(AnnotatorError, match=said):
            fetch_source(Address.parse(source) if "://" in source else tmp_path / source, tmp_path / "p")
        assert not (tmp_path / "p").exists(), source


def test_archives_that_unpack_to_excessive_sizes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(unpack_limits, "ALWAYS_ALLOWED_BYTES", 1 << 20)
    monkeypatch.setattr(unpack_limits, "ALWAYS_ALLOWED_MEMBER_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", bytes(5 << 20))
    with pytest.raises(AnnotatorError, match=r"'a.png': it would unpack from .* kB to 5.2 MB, more than 200 times"):
        fetch_source(tmp_path / "a.zip", tmp_path / "p")
    assert not (tmp_path / "p").exists()
    make_tar(tmp_path / "b.tar.gz", {"README": bytes(5 << 20), "a.png": PICTURES[0]}, "w:gz")
    with pytest.raises(AnnotatorError, match=r"more than 1\.\d MB, 200 times the .* kB of the archive"):
        fetch_source(tmp_path / "b.tar.gz", tmp_path / "p")


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
def test_truncated_archive_is_refused_and_the_complete_one_is_imported(name, annotator, tmp_path):
    make = {"a.zip": make_zip, "a.tar": make_tar, "a.tar.gz": partial(make_tar, mode="w:gz")}[name]
    whole = make(tmp_path / name, MEMBERS).read_bytes()
    (tmp_path / name).write_bytes(whole[: 2000 if name == "a.tar" else int(len(whole) * 0.6)])
    said = annotator("import", "p", name, "--yes", code=1).stderr
    assert f"{name} is no whole {name.split('.')[1]}" in said
    assert "member" in said or name == "a.zip"  # without its end a zip has no list of members
    assert not (tmp_path / "p/project.db").exists()
    (tmp_path / name).write_bytes(whole)
    said = annotator("import", "p", name, "--yes").stdout
    assert cells(tmp_path / "p") == EXPECTED


def test_damaged_zip_member_is_named_and_nothing_is_registered(annotator, tmp_path):
    content = bytearray(make_zip(tmp_path / "a.zip", MEMBERS).read_bytes())
    place = content.index(PICTURES[3]) + 60
    content[place] ^= 255
    (tmp_path / "a.zip").write_bytes(content)
    assert "the member 'set/dog/3.png'" in annotator("import", "p", "a.zip", "--yes", code=1).stderr
    assert not (tmp_path / "p/project.db").exists()


def test_zip_directory_read_in_parts_equals_zipfile(tmp_path, monkeypatch):
    monkeypatch.setattr(zip_directory, "MEMBERS_PER_PART", 4)
    for number, limit in enumerate((65_535, 3)):  # with more members than this, it is Zip64
        monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", limit)
        path = tmp_path / f"{number}.zip"
        path.write_bytes(b"what was put before it")
        with zipfile.ZipFile(path, "a") as archive:
            for name, content in MEMBERS.items():
                archive.writestr(f"\xe9 {name}", content)
            archive.comment = b"a comment, with PK in it"
        with path.open("rb") as file, zipfile.ZipFile(path) as whole:
            directory, read = zip_directory.find_directory(file), []
            for part in zip_directory.open_parts(file, directory):
                read += [(member.filename, member.CRC, part.read(member)) for member in part.infolist()]
            assert directory.members == len(MEMBERS)
            assert read == [(member.filename, member.CRC, whole.read(member)) for member in whole.infolist()]


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archive_with_clashing_or_unusual_names_keeps_every_image(kind, annotator, tmp_path):
    names = ["a.png", "A.png", "a.png", "new\nline\x1b[31m.png", f"{'x' * 230}.png", "\u202egnp.png"]
    if kind == "zip":
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            for name, content in zip(names, PICTURES, strict=True):
                archive.writestr(name, content)
    else:
        with tarfile.open(tmp_path / "a.tar", "w") as archive:
            for name, content in zip(names, PICTURES, strict=True):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    done = annotator("import", "p", f"a.{kind}", "--yes")
    assert cells(tmp_path / "p").keys() == EXPECTED.keys()
    assert "4 files got another name: 'A.png' is 'A~2.png'" in done.stdout
    assert "\x1b" not in done.stdout
    assert "6 as before" in annotator("import", "p", f"a.{kind}", "--yes").stdout


def test_safe_path_keeps_any_name_inside_its_folder_and_is_idempotent():
    from hypothesis import given
    from hypothesis import strategies as st

    @given(st.text(alphabet=st.sampled_from("ab./\\ :~\0\n\udcff\u202eé"), max_size=30))
    def holds(name):
        try:
            path = safe_path(name)
        except Exception as error:
            assert type(error).__name__ == "UnsafeNameError"
            return
        assert (Path("/base") / path).resolve().is_relative_to("/base")
        assert path
        assert safe_path(path) == path

    holds()
    devices = {"x/con.jpg": "x/_con.jpg", "AUX": "_AUX", "a:b.jpg": "_a_b.jpg", "C:x/Com1.tar.gz": "_C_x/_Com1.tar.gz"}
    assert {name: safe_path(name) for name in devices} == devices, "what Windows takes for a drive or a device"
    assert safe_path("console/12:30.jpg") == "console/12:30.jpg"


KILLED = """
import os, signal, sys
landed = 0
def kill_at_700(event, arguments):
    global landed
    if event == "os.rename" and str(arguments[1]).endswith(".png"):
        landed += 1
        if landed == 700:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(kill_at_700)
from annotator.__main__ import main
main()
"""


@pytest.mark.process
def test_killed_import_resumes_where_it_stopped(annotator, tmp_path):
    members = {f"{number}.png": picture(number) for number in range(800)}
    make_zip(tmp_path / "a.zip", members)
    command = [sys.executable, "-P", "-c", KILLED, "import", "p", "a.zip", "--yes"]
    killed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "p/project.db").exists()
    said = annotator("import", "p", "a.zip", "--yes").stdout
    assert "a.zip: 300 new, 500 as before, " in said  # transactions hold 500; none of the 200 after them has changed
    assert cells(tmp_path / "p").keys() == {hashlib.sha256(content).hexdigest() for content in members.values()}


PRINTING = -2  # the moment when what was done is printed


@pytest.fixture
def interrupt():
    """Interrupts this process at a call of a function of ours, counted from where a source is fetched to where what
    was done is printed."""

    def at(moment):
        calls = [0]

        def count(frame, event, _):
            name, file = frame.f_code.co_name, frame.f_code.co_filename
            if name == "_print_done":
                sys.setprofile(None)
                if moment == PRINTING:
                    raise KeyboardInterrupt
            elif event == "call" and ("/annotator/exchange/" in file or "/annotator/store/" in file):
                calls[0] += calls[0] > 0 or name == "locate_source"
                if calls[0] == moment:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        sys.setprofile(count)
        return calls

    yield at
    sys.setprofile(None)


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 1])
def test_import_interrupted_at_any_moment_reports_whether_it_was_stored_and_resumes(
    others, annotator, interrupt, tmp_path
):
    """Into a project that is there, and into a new one."""
    make_zip(tmp_path / "a.zip", MEMBERS)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/first.png").write_bytes(picture(9))

    def begin(name, moment, code):
        if others:
            annotator("import", name, "other", "--yes")
        calls = interrupt(moment)
        error = annotator("import", name, "a.zip", "--yes", code=code).stderr
        return calls[0], error, tmp_path / name

    annotator("import", "first", "a.zip", "--yes")  # loads modules, whose calls would be counted once only
    last = begin("whole", -1, 0)[0]
    for moment, stored in ((1, False), (last // 2, False), (last * 9 // 10, False), (last, True), (PRINTING, True)):
        _, error, project = begin(f"p{moment}", moment, 1)
        assert (project / "project.db").exists() == bool(others or stored), moment
        assert not (others or stored) or len(load_imports(Database(project))) == others + stored, moment
        wanted = f"Interrupted after the import was stored. See: annotator imports {project.name}"
        assert (wanted if stored else "Give the same command again to ") in error, moment
        gc.collect()  # what was interrupted is still held by its exception, which a new process would not know
        annotator("import", project, "a.zip", "--yes")
        assert cells(project).items() >= EXPECTED.items()
        assert len(cells(project)) == 6 + others


class Web(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, counts what it sends, and can redirect, ask for a password, or stand still."""

    sent: list[str]
    redirect = ""
    password = ""
    still = False

    def do_GET(self):
        if self.command == "GET":
            type(self).sent.append(self.path)
        if self.still:
            threading.Event().wait(1)
        if self.redirect and self.path.endswith(".png"):
            self.send_response(302)
            self.send_header("Location", self.redirect)
            self.end_headers()
        elif self.password and self.headers.get("Authorization") != self.password:
            self.send_error(401)
        elif self.command == "HEAD":
            super().do_HEAD()
        else:
            super().do_GET()

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *values):
        pass


@pytest.fixture
def web(tmp_path, monkeypatch):
    """(address, its handler): serves tmp_path/web, with six images in two folders."""
    monkeypatch.setattr(file_systems, "RETRY_WAIT_SECONDS", 0)
    for name, content in MEMBERS.items():
        file = tmp_path / "web" / name.replace("set/", "a set/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    handler = type("Handler", (Web,), {"sent": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tmp_path / "web")))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()


def test_web_folder_import_downloads_only_new_files_when_repeated(web, annotator, tmp_path, monkeypatch):
    address, handler = web
    monkeypatch.setattr(urls, "REQUEST_BYTES", 100)  # several requests a file, of a server that sends no parts
    annotator("import", "p", f"{address}/a%20set/", "--yes")
    assert cells(tmp_path / "p") == EXPECTED
    handler.sent.clear()
    (tmp_path / "web/a set/cat/new.png").write_bytes(picture(99))
    said = annotator("import", "p", f"{address}/a%20set/", "--yes").stdout
    assert {path for path in handler.sent if path.endswith(".png")} == {"/a%20set/cat/new.png"}
    assert "1 new, 6 as before" in said
    assert "1 image added" in said


def test_archive_at_a_url_is_downloaded_and_unpacked(web, annotator, tmp_path):
    make_zip(tmp_path / "web/photos.zip", MEMBERS)
    annotator("init", "p", "--images", f"{web[0]}/photos.zip?key=very-secret-value-1")
    assert cells(tmp_path / "p").keys() == EXPECTED.keys()


def test_url_passwords_and_signatures_are_neither_printed_nor_stored(web, annotator, tmp_path):
    address, handler = web
    handler.password = "Basic YW5uOnMzY3IzdHB3"  # ann:s3cr3tpw
    secret = address.replace("http://", "http://ann:s3cr3tpw@")
    shown = [annotator("import", "p", f"{secret}/a%20set/?X-Amz-Signature=abcdef0123456789abcdef", "--yes")]
    assert cells(tmp_path / "p") == EXPECTED
    shown.append(annotator("imports", "p"))
    handler.password = "other"
    for wrong in (f"{secret}/a%20set/", f"{secret}/none.zip?token=s3cr3tpw", f"ftp://ann:s3cr3tpw@{address[7:]}/x"):
        shown.append(annotator("import", "p", wrong, "--yes", code=1))
    kept = b"".join(file.read_bytes() for file in (tmp_path / "p").rglob("*") if file.is_file())
    everything = kept.decode("latin-1") + "".join(done.stdout + done.stderr for done in shown)
    assert "s3cr3tpw" not in everything
    assert "abcdef0123456789" not in everything


def test_missing_or_unresponsive_url_is_reported_as_unreadable(web, annotator, monkeypatch):
    address, handler = web
    said = annotator("import", "p", f"{address}/none/", "--yes", code=1).stderr
    assert f"{address}/none/ cannot be read" in said
    assert "There is nothing of this name" in said
    monkeypatch.setattr(web_servers, "READ_TIMEOUT_SECONDS", 0.2)
    handler.still = True
    said = annotator("import", "p", f"{address}/a%20set/", "--yes", code=1).stderr
    assert "There was no answer within" in said
    monkeypatch.setattr(web_servers, "CONNECT_TIMEOUT_SECONDS", 1)
    assert "cannot be read" in annotator("import", "p", "http://127.0.0.1:1/x/", "--yes", code=1).stderr


@pytest.mark.parametrize("target", ["http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "ftp://h/x.png"])
def test_redirects_to_cloud_metadata_and_other_schemes_are_not_followed(target, web, annotator, tmp_path):
    address, handler = web
    handler.redirect = target
    said = annotator("import", "p", f"{address}/a%20set/", "--yes", code=1).stderr
    assert "address inside of" in said or "not followed" in said
    assert not list((tmp_path / "p").rglob("*.png"))


class Hostile(http.server.BaseHTTPRequestHandler):
    """What is asked for says how its server behaves."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        unstated = self.path in ("/endless.png", "/bomb.png")
        self.answer(200, {} if unstated else {"Content-Length": "100", "ETag": "new"})

    def do_GET(self):
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        self.server.asked.append(start)
        rest, span = NEW[start:], {"Content-Range": f"bytes {start}-99/100", "ETag": "new"}
        length = {"Content-Length": str(len(rest)), "ETag": "new"}
        self.close_connection = True
        match self.path:
            case "/endless.png" | "/endless/":
                self.answer(200, {"Connection": "close"}, bytes(3 << 20))
            case "/bomb.png":
                self.answer(200, {"Connection": "close", "Content-Encoding": "gzip"}, gzip.compress(bytes(3 << 20)))
            case "/long.png":
                self.answer(200, {"Content-Length": "3000"}, bytes(3000))
            case "/short.png":
                self.answer(200, {"Content-Length": "100"}, NEW[:50])
            case "/304.png":
                self.answer(304, {})
            case "/416.png" if start:
                self.answer(416, {"Content-Length": "0"})
            case "/other-version.png" if start:
                self.answer(206, length | span | {"ETag": "newer"}, rest)
            case "/other-part.png" if start:
                self.answer(206, length | span | {"Content-Range": "bytes 0-9/100"}, rest)
            case "/no-parts.png" | "/416.png" | "/other-version.png" | "/other-part.png":
                self.answer(200, {"Content-Length": "100", "ETag": "new"}, NEW)
            case "/parts.png":
                self.answer(206 if start else 200, length | (span if start else {}), rest)

    def answer(self, status, headers, content=b""):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # the other side has had enough
            self.wfile.write(content)

    def log_message(self, *values):
        pass


NEW = bytes(range(100))
HOSTILE = {
    "endless.png": "sends more than the 1,048,576 bytes that an image or labels have",
    "bomb.png": "sends more than the 1,048,576 bytes",
    "long.png": "sends more than the 100 bytes that it stated",
    "short.png": "Not enough data to satisfy content length header",
    "304.png": "answers with status 304",
    "endless/": "sends a page of more than 1,048,576 bytes",
}
CUT_OFF = ["parts.png", "no-parts.png", "416.png", "other-version.png", "other-part.png"]


def test_download_refuses_oversized_responses_and_urls_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(file_systems, "RETRY_WAIT_SECONDS", 0)
    monkeypatch.setattr(web_servers, "MAX_MEMBER_BYTES", 1 << 20)
    monkeypatch.setattr(web_servers, "MAX_PAGE_BYTES", 1 << 20)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    server.asked = []
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        for name, said in HOSTILE.items():
            with pytest.raises(AnnotatorError, match=said):
                fetch_source(Address.parse(f"{address}/{name}"), tmp_path / "p")
            assert not [file for file in (tmp_path / "p").rglob("*.png") if file.is_file()], name
        server.asked.clear()
        for name in CUT_OFF:
            key = hashlib.sha256(f"{address}/{name}\0new".encode()).hexdigest()[:24]
            folder = tmp_path / "cut off" / "imported" / name
            folder.mkdir(parents=True)
            with fetched_manifest.open_manifest(folder):
                (folder / f".part-{key}").write_bytes(NEW[:40])
            fetch_source(Address.parse(f"{address}/{name}"), tmp_path / "cut off")
            assert (folder / name).read_bytes() == NEW, name
            assert server.asked == ([40, 0] if name in CUT_OFF[2:] else [40]), name
            server.asked.clear()
        with pytest.raises(AnnotatorError, match=r"127.0.0.1 is .*an address inside of this machine"):
            fetch_source(Address.parse(f"{address}/parts.png"), tmp_path / "p", may_be_own=False)
        monkeypatch.setattr(web_servers, "is_own_host", lambda host: False)
        with pytest.raises(AnnotatorError, match=r"localhost is .*an address inside of this machine"):
            fetch_source(Address.parse(f"{address.replace('127.0.0.1', 'localhost')}/parts.png"), tmp_path / "p")
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc",
        "local:///etc",
        "memory://x",
        "simplecache::file:///etc",
        "zip://a.png::http://127.0.0.1/a.zip",
        "http://169.254.169.254/latest/",
        "http://[::ffff:169.254.169.254]/latest/",
        "http://[64:ff9b::a9fe:a9fe]/latest/",
        "s3://key:secret@bucket/x",
        "https:///x",
        "reference://x",
    ],
)
def test_urls_that_could_read_local_files_or_cloud_metadata_are_refused(address, tmp_path):
    with pytest.raises(AnnotatorError):
        fetch_source(Address.parse(address), tmp_path / "p")
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("host", ["10.0.0.1", "100.64.0.1", "::1", "fd00::1", "2002:a00:1::", "0.0.0.0"])
def test_private_network_hosts_are_refused_unless_own_hosts_are_allowed(host):
    check_host(host, may_be_own=True)
    with pytest.raises(AnnotatorError, match="inside of this machine"):
        check_host(host, may_be_own=False)


def test_url_secrets_are_redacted():
    shown = addresses.redact_address(
        "https://u:p%40w@h.org:80/a/b.zip?id=3&sig=abc&X-Amz-Credential=k&long=0123456789abcdef"
    )
    assert shown == "https://***@h.org:80/a/b.zip?id=3&sig=***&X-Amz-Credential=***&long=***"
    assert "p@w" not in addresses.remove_secrets("refused p@w and u:p%40w", Address.parse("https://u:p%40w@h.org/"))


@pytest.fixture
def bucket(monkeypatch):
    """An S3 server of its own with six images below birds/."""
    server_of = pytest.importorskip("moto.server").ThreadedMotoServer
    import boto3

    server = server_of(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = boto3.client("s3")
    client.create_bucket(Bucket="photos")
    for name, content in MEMBERS.items():
        client.put_object(Bucket="photos", Key=f"birds/{name}", Body=content)
    yield client
    server.stop()


@pytest.mark.slow
def test_bucket_is_listed_in_pages_and_reimport_finds_changed_and_missing_files(
    bucket, annotator, tmp_path, monkeypatch
):
    monkeypatch.setattr(listing, "PAGE_ENTRIES", 2)
    monkeypatch.setattr(urls, "DOWNLOADS_PER_PAGE", 2)
    monkeypatch.setattr(urls, "REQUEST_BYTES", 100)  # several parts a file
    annotator("import", "p", "s3://photos/birds", "--yes")
    assert cells(tmp_path / "p") == EXPECTED
    bucket.put_object(Bucket="photos", Key="birds/set/cat/0.png", Body=picture(50))
    bucket.delete_object(Bucket="photos", Key="birds/set/dog/1.png")
    said = annotator("import", "p", "s3://photos/birds", "--yes").stdout
    assert "1 changed, 4 as before" in said
    assert "1 file is gone from the source, and kept here: 'set/dog/1.png'" in said
    said = annotator("import", "p", "s3://no-such-bucket/birds", "--yes", code=1).stderr
    assert "s3://no-such-bucket/birds cannot be read" in said
    assert "Is the bucket and the path spelled right?" in said


def test_interrupted_download_resumes_within_the_file(bucket, tmp_path, monkeypatch):
    monkeypatch.setattr(urls, "REQUEST_BYTES", 1 << 16)
    content = os.urandom(5 << 16)
    bucket.put_object(Bucket="photos", Key="big/a.png", Body=content)
    calls, real = [], urls.call_with_retry

    def cut(call, *values, **options):
        if getattr(call, "__name__", "").endswith("cat_file"):
            calls.append(options.get("start"))
            if len(calls) == 3:
                raise OSError("cut off")
        return real(call, *values, **options)

    monkeypatch.setattr(urls, "call_with_retry", cut)
    with pytest.raises(AnnotatorError, match="s3://photos/big cannot be"):
        fetch_source(Address.parse("s3://photos/big"), tmp_path / "p")
    fetch_source(Address.parse("s3://photos/big"), tmp_path / "p")
    assert calls == [0, 1 << 16, 2 << 16, 2 << 16, 3 << 16, 4 << 16]
    assert (tmp_path / "p/imported/big/a.png").read_bytes() == content

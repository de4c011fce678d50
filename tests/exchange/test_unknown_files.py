"""Refusals of files that no format recognizes: what they look like, and what to do."""

import zipfile

import pytest
from conftest import draw
from harness.tables import over

from annotator.errors import AnnotatorError
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.imports.label_files import choose_format
from annotator.exchange.sources import fetch_source


@over(content=[b"7z\xbc\xaf\x27\x1c" + bytes(20), b"Rar!\x1a\x07\x01\x00" + bytes(20)])
def test_7z_and_rar_archives_are_refused_with_the_advice_to_unpack_them(content, tmp_path):
    path = tmp_path / "photos.bin"
    path.write_bytes(content)
    with pytest.raises(AnnotatorError, match=r"archive, which is not supported. Unpack it first"):
        choose_format(path, None)


def test_zip_that_is_the_last_part_of_several_is_refused_with_the_advice_to_unpack_it(tmp_path):
    (tmp_path / "photos.z01").write_bytes(b"PK\x07\x08" + bytes(50))
    (tmp_path / "photos.zip").write_bytes(b"PK\x01\x02" + bytes(50))
    with pytest.raises(AnnotatorError, match=r"photos.zip is the last part of a divided zip file"):
        fetch_source(tmp_path / "photos.zip", tmp_path / "project")
    with pytest.raises(AnnotatorError, match=r"part of a divided archive, which is not supported. Unpack it first"):
        choose_format(tmp_path / "photos.z01", None)


@over(
    content__look=[
        (b"[1, 2]", "looks like a JSON list without keys"),
        (b'{"pages": {"a": 1}}', "the first keys pages, a"),
        (b"one line\n", 'first line is "one line"'),
        (b"<html></html>", "looks like XML"),
        (b"a;b\n1;2\n", "the columns a, b"),
        (b"\0\1", "the bytes 00 01"),
        (b"\x80\x04\x95", "pickle"),
        (b"", "is empty"),
    ]
)
def test_unknown_file_is_refused_with_what_it_looks_like_and_at_most_three_commands(content, look, tmp_path):
    path = tmp_path / "labels.unknown"
    path.write_bytes(content)
    with pytest.raises(AnnotatorError) as error:
        choose_format(path, None)
    message = str(error.value)
    assert look in message
    assert message.count("annotator import") <= 3
    assert "annotator formats" in message
    assert "webdataset" not in message


@over(name=["labels.sql", "list.html", "noending", "labels.zip", "train-00000-of-00010"])
def test_text_file_that_names_images_is_reported(name, tmp_path):
    folder = tmp_path / f"set of {name}"
    draw(folder / "a.jpg")
    (folder / name).write_text("('a.jpg', 'fox')")
    (folder / "README.md").write_text("See a.jpg")
    with prepare_import(tmp_path / "project", folder, ImportOptions(), "Ann") as plan:
        assert f"Archives and files that name images, and are not read: {name}." in plan.sentences


def test_archive_member_that_is_not_read_is_named(tmp_path):
    draw(tmp_path / "a.jpg")
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.write(tmp_path / "a.jpg", "a.jpg")
        archive.writestr("labels.mat", "MATLAB 5.0")
    with prepare_import(tmp_path / "project", tmp_path / "set.zip", ImportOptions(), "Ann") as plan:
        assert "1 file passed over, neither images nor labels that are read, such as 'labels.mat'." in plan.sentences

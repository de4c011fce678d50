"""Text files that commands write are complete, or not there."""

import csv
import os
from pathlib import Path

import pytest

from annotator.errors import AnnotatorError
from annotator.exchange.files.text_output import open_text_output


def test_text_output_leaves_no_file_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), open_text_output(tmp_path / "a.csv") as file:
        file.write("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_text_output_keeps_the_existing_file_until_the_new_one_is_complete(tmp_path):
    target, link = tmp_path / "a.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    with pytest.raises(RuntimeError), open_text_output(link, overwrite=True) as file:
        file.write("half")
        raise RuntimeError
    assert target.read_text() == "old"
    with open_text_output(link, overwrite=True) as file:
        file.write("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new" and link.is_symlink() and len(list(tmp_path.iterdir())) == 2


def test_text_output_refuses_existing_files_and_missing_folders(tmp_path):
    (tmp_path / "a.csv").write_text("mine")
    for path, overwrite, said in (
        ("a.csv", False, "is there already"),
        ("none/a.csv", True, "There is no folder"),
        (".", True, "is a folder"),
    ):
        with pytest.raises(AnnotatorError, match=said), open_text_output(tmp_path / path, overwrite=overwrite):
            pass
    assert (tmp_path / "a.csv").read_text() == "mine" and not (tmp_path / "none").exists()


def test_text_output_writes_to_a_device_as_it_is():
    with open_text_output(Path(os.devnull), overwrite=True) as file:
        file.write("nothing")
    assert not Path(os.devnull).is_file()


def test_text_output_escapes_characters_that_utf_8_cannot_hold(tmp_path):
    with open_text_output(tmp_path / "a.csv") as file:
        file.write("a\udce9b")
    assert (tmp_path / "a.csv").read_text() == "a\\udce9b"


@pytest.mark.parametrize(
    "words",
    [
        ("agreement", "project", "--csv"),
        ("people", "project", "--csv"),
        ("members", "log", "project", "--csv"),
    ],
)
def test_report_commands_refuse_a_missing_folder_and_write_a_whole_table(annotator, project, tmp_path, words):
    assert "There is no folder" in annotator(*words, tmp_path / "none" / "a.csv", code=1).stderr
    annotator(*words, tmp_path / "a.csv")
    annotator(*words, tmp_path / "a.csv")
    assert list(csv.reader((tmp_path / "a.csv").open(encoding="utf-8")))
    assert not list(tmp_path.glob(".*.part"))

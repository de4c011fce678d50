"""The command line as a person and a script meet it."""

import json

import pytest

from annotator import __version__

pytestmark = pytest.mark.process


def test_from_a_folder_to_an_export_by_commands_alone(annotator, tmp_path, photos, class_file):
    said = annotator("init", "project", "--images", photos, "--classes", class_file).stdout
    assert "24 images added" in said and "3 classes added" in said
    assert "heron present" in annotator("decide", "project", "deep/23.png", "heron", "present").stdout
    annotator("decide", "project", "00.jpg", "fox", "absent", "--annotator", "Bob")
    annotator("decide", "project", str(photos / "01.jpg"), "fox", "unsure")
    assert "undone: 00.jpg: fox absent (by Bob)" in annotator("undo", "project", "--annotator", "Bob").stdout
    told = annotator("undo", "project", "--annotator", "Bob", code=1).stderr
    assert "no decision by Bob left" in told
    status = json.loads(annotator("status", "project", "--json").stdout)
    assert status["labels"] == {"present": 1, "absent": 0, "unsure": 1}
    assert (status["images"], status["classes"], status["images_without_decision"]) == (24, 3, 22)
    assert status["decisions"] == {"click": 2}
    assert (status["run"], status["last_error"], status["worker"]["state"]) == (None, None, "not started")
    annotator("export", "project", "out.csv", "--format", "csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "image,fox,heron,deer"
    assert json.loads(annotator("suggest", "project", "--json").stdout) == []
    text = annotator("status", "project").stdout
    assert "22 without a decision" in text and "none yet" in text


def test_errors_are_told_without_a_traceback_and_name_what_exists(annotator, project):
    for words, expected in (
        (("decide", project, "00.jpeg", "fox", "present"), "Did you mean '00.jpg'"),
        (("decide", project, "00.jpg", "wolf", "present"), "There is: fox, heron, deer"),
        (("suggest", project, "--class", "herron"), "Did you mean 'heron'"),
        (("status", project.parent), "There is no project"),
        (("export", project, project.parent / "x.csv", "--unknown", "model"), "no run yet"),
    ):
        told = annotator(*words, code=1)
        assert told.stderr.startswith("Error: ") and expected in told.stderr
        assert "Traceback" not in told.stderr


def test_wrong_usage_is_told_with_status_2(annotator, project):
    assert "maybe" in annotator("decide", project, "00.jpg", "fox", "maybe", code=2).stderr
    assert "No such command" in annotator("lable", code=2).stderr


def test_it_tells_its_version_and_runs_as_a_module_too(annotator):
    assert annotator("--version").stdout.strip() == __version__


def test_a_kept_out_file_is_named_by_init_and_status(annotator, photos):
    (photos / "torn.jpg").write_bytes(b"\xff\xd8\xff\xe0 this was a photo once")
    said = annotator("init", "project", "--images", photos).stdout
    assert "1 files kept out" in said and "torn.jpg" in said
    listed = json.loads(annotator("status", "project", "--json").stdout)["files_kept_out"]
    assert [one["file"] for one in listed] == ["torn.jpg"] and listed[0]["reason"]

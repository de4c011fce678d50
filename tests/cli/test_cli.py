"""The command line as a person and a script meet it."""

import json

import numpy as np
import pytest
from harness.feature_shards import add_features
from typer.testing import CliRunner

from annotator import __version__
from annotator.cli import app
from annotator.settings import DEFAULT_BACKBONE
from annotator.store.database.database import Database

pytestmark = pytest.mark.process


def test_commands_cover_the_workflow_from_a_folder_to_an_export(annotator, tmp_path, photos, class_file):
    said = annotator("init", "project", "--images", photos, "--classes", class_file).stdout
    assert "24 images added" in said and "3 classes added" in said
    assert "heron present" in annotator("decide", "project", "deep/23.png", "heron", "present").stdout
    annotator("decide", "project", "00.jpg", "fox", "absent", "--annotator", "Bob")
    annotator("decide", "project", str(photos / "01.jpg"), "fox", "unsure")
    assert "Undid: 00.jpg: fox absent (by Bob)" in annotator("undo", "project", "--annotator", "Bob").stdout
    told = annotator("undo", "project", "--annotator", "Bob", code=1).stderr
    assert "no decision by Bob left" in told and "--anyone" in told
    assert "(by Eve)" not in annotator("decide", "project", "02.jpg", "fox", "present", "--annotator", "Eve").stdout
    annotator("undo", "project"), annotator("undo", "project")
    assert "newest is by Eve" in annotator("undo", "project", code=1).stderr, "nobody else's is taken back by itself"
    assert "Undid: 02.jpg: fox present (by Eve)" in annotator("undo", "project", "--anyone").stdout
    annotator("decide", "project", "deep/23.png", "heron", "present")
    annotator("decide", "project", "01.jpg", "fox", "unsure")
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


def test_command_errors_name_valid_choices_without_a_traceback(annotator, project):
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


def test_wrong_usage_exits_with_status_2(annotator, project):
    assert "maybe" in annotator("decide", project, "00.jpg", "fox", "maybe", code=2).stderr
    assert "No such command" in annotator("lable", code=2).stderr


def test_version_option_prints_the_version(annotator):
    assert annotator("--version").stdout.strip() == __version__


def test_init_and_status_commands_name_skipped_files(annotator, photos):
    (photos / "torn.jpg").write_bytes(b"\xff\xd8\xff\xe0 this was a photo once")
    said = annotator("init", "project", "--images", photos).stdout
    assert "1 file skipped" in said and "torn.jpg" in said
    listed = json.loads(annotator("status", "project", "--json").stdout)["files_kept_out"]
    assert [one["file"] for one in listed] == ["torn.jpg"] and listed[0]["reason"]


def test_train_command_stores_method_parameters_and_status_shows_them(annotator, project):
    annotator("decide", project, "00.jpg", "fox", "present")
    # So that none are made here.
    add_features(Database(project), DEFAULT_BACKBONE, np.arange(1, 25), np.eye(24), np.zeros((24, 9, 24)))
    told = annotator("train", project, "--method", "em_apl", "--set", "alpha=0.1", "--set", "warm_up=0.4").stdout
    assert "em_apl" in told
    assert "em_apl (alpha=0.1, warm_up=0.4)" in annotator("status", project).stdout
    status = json.loads(annotator("status", project, "--json").stdout)
    assert status["parameters"] == {"alpha": 0.1, "warm_up": 0.4}
    told = annotator("train", project, "--set", "alpa=1", "--set", "beta=x", code=1).stderr
    assert "Did you mean 'alpha'" in told and "beta = 'x' must be a number" in told and "negatives=0.9" in told
    assert json.loads(annotator("status", project, "--json").stdout)["parameters"] == status["parameters"]


def test_methods_command_lists_all_methods_and_shows_each_in_full(monkeypatch):
    def said(*words):
        done = CliRunner().invoke(app, ["methods", *words])
        return str(done.exception) if done.exception else done.stdout

    monkeypatch.setenv("COLUMNS", "90")
    listed = json.loads(said("--json"))
    assert {"name", "title", "paper", "year", "url", "assumes", "parameters"} <= set(listed[0])
    lines = said().splitlines()
    assert max(map(len, lines[:-1])) < 90
    text = " ".join(" ".join(lines).split())
    for one in listed:
        assert one["url"] in text and one["assumes"] in text and str(one["year"]) in text
        assert f"needs {one['needs_in_words'] or 'labels only'}; figures of the paper reproduced: " in text
        assert all(" ".join(point.split()) in " ".join(said(one["name"]).split()) for point in one["open_points"])
    for shown in (text, said("auto")):
        assert "This project's own (2026), built on gr: Chen et al., Boosting" in shown and "None" not in shown
    em = json.loads(said("em_apl", "--json"))
    assert em["parameters"]["alpha"] == 0.2 and {"tunable", "published", "threshold"} <= set(em)
    assert "warm_up" in said("em_apl")
    assert "Did you mean 'em_apl'" in said("em_appl") and "an, " in said("em_appl")

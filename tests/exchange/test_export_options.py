"""Options of an export: each row of OPTIONS has its flag, widget and place in the documents, and reaches the export."""

import csv
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields, is_dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import typer
from harness.answers import put_aside
from harness.blind_answers import say
from harness.export_page import content, page, press
from harness.named_images import bring
from harness.published_runs import sure
from harness.short_forms import mark_slow_after

from annotator.cli import app
from annotator.cli.export import _read_option_values
from annotator.exchange.exports.choices import Choices, build_choices
from annotator.exchange.exports.export_command import format_export_command
from annotator.exchange.exports.export_options import OPTIONS, OptionValues
from annotator.exchange.exports.export_summary import drop_uncounted_choices
from annotator.exchange.exports.option_types import Effect, WidgetKind
from annotator.exchange.formats import find_format
from annotator.project import Project
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import event_labels, image_overlap

__all__ = ["sure"]  # a fixture

ROOT = Path(__file__).resolve().parents[2]

# Field -> a value that is not the default. An option that needs another one has that in NEEDED.
CHOSEN: dict[str, Any] = {
    "unknown": "model",
    "limits.expected_error": 0.05,
    "limits.present_from": 0.9,
    "limits.absent_to": 0.1,
    "only_complete": True,
    "only_labeled": True,
    "set_aside": True,
    "classes": ("deer", "fox"),
    "states": ("present",),
    "annotators": ("Ann",),
    "sources": ("click",),
    "differing": "majority",
    "auto_accepted": False,
    "accepted_precision": 0.9,
    "accepted_confidence": 0.95,
    "splits": "train=0.8,val=0.1,test=0.1",
    "split_by": "folder",
    "seed": 3,
    "images": "resize",
    "pixels": 64,
    "columns.long": True,
    "columns.chosen": (("image", "a file"), ("fox", "fox")),
    "columns.seconds": True,
    "pseudonyms": True,
    "raw": True,
    "license": "CC-BY-4.0",
    "cite": "Ann, 2026",
    "event_labels": True,
    "deployments": "/stations.csv",
    "croissant": True,
}
NEEDED = {
    "limits.expected_error": {"unknown": "model"},
    "limits.present_from": {"unknown": "model"},
    "limits.absent_to": {"unknown": "model"},
    "split_by": {"splits": CHOSEN["splits"]},
    "seed": {"splits": CHOSEN["splits"]},
    "pixels": {"images": "resize"},
}
# Field -> what is set on the page; for options that their own functions draw, and for paths.
TYPED: dict[str, dict[str, Any]] = {
    "limits.expected_error": {"expected_error": 5.0},
    "limits.present_from": {"export_own": True},
    "limits.absent_to": {"export_own": True},
    "splits": {"splits": "new"},
    "images": {"images_none": "resize"},
    "columns.long": {"shape": "long"},
    "columns.chosen": {"choose_columns": True},
}
VALUES = [option for option in OPTIONS if not option.abbreviates]


def choose(field: str) -> Choices:
    return build_choices({**NEEDED.get(field, {}), field: CHOSEN[field]})


def find_kind(field: str) -> str:
    [option] = [option for option in OPTIONS if option.field == field]
    return "camtrap-dp" if "camtrap-dp" in option.formats or field in ("images", "pixels") else "csv"


def command() -> Any:
    return typer.main.get_command(app).commands["export"]


def test_export_option_table_and_option_values_declare_the_same_fields():
    declared = []
    for field in fields(OptionValues):
        value = getattr(OptionValues(), field.name)
        inner = [f"{field.name}.{one.name}" for one in fields(value)] if is_dataclass(value) else [field.name]
        declared += inner
    assert sorted(declared) == sorted(option.field for option in VALUES) == sorted(CHOSEN)
    assert all(set(option.abbreviates) <= set(declared) for option in OPTIONS)
    assert len({option.parameter for option in OPTIONS}) == len({option.flag for option in OPTIONS}) == len(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.field)
def test_every_export_option_has_a_cli_flag_documentation_and_a_page_widget(option):
    [parameter] = [one for one in command().params if option.flag in one.opts]
    assert parameter.help == option.help
    documented = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8").partition("| Options of `export` |")[2]
    assert f"`{option.flag}" in documented.partition("\n\n")[0], "docs/formats.md has no such option"
    assert option.widget or option.abbreviates


@pytest.mark.slow
@pytest.mark.parametrize("option", VALUES, ids=lambda option: option.field)
def test_export_option_value_survives_conversion_to_a_command_line_and_to_json(option, tmp_path):
    choices, format_ = choose(option.field), find_format(find_kind(option.field), "write")
    line = shlex.split(format_export_command(Path("birds"), Path("out"), format_, choices))
    assert any(word.partition("=")[0] == option.flag for word in line)
    context = command().make_context("export", line[2:])
    given = {one.parameter: context.params[one.parameter] for one in OPTIONS}
    assert build_choices(_read_option_values(given)) == choices
    assert Choices.from_json(json.loads(json.dumps(choices.as_json()))) == choices


def test_export_command_without_options_uses_the_default_choices():
    context = command().make_context("export", ["birds", "out.csv"])
    given = {one.parameter: context.params[one.parameter] for one in OPTIONS}
    assert build_choices(_read_option_values(given)) == Choices()
    assert signature(Project.export).parameters["choices"].default is None


@pytest.mark.parametrize("option", VALUES, ids=lambda option: option.field)
def test_export_preview_recounts_only_for_options_that_change_counts(option):
    choices = choose(option.field)
    kept = drop_uncounted_choices(choices).get_value(option.field)
    assert (kept == choices.get_value(option.field)) == (option.effect == Effect.COUNTS)
    assert choices.problems() == []


@pytest.fixture
def rich(sure, tmp_path):
    """A project with a run, disagreements, an excluded image, attributes and labels of events."""
    image_overlap.set_overlap(sure, 2, 1.0)
    say(sure, 1, "Ann", (1,))
    say(sure, 1, "Ben", (2,))
    put_aside(sure, 9)
    add_event_labels(sure, tmp_path)
    return sure


def add_event_labels(db: Database, folder: Path) -> None:
    """Import that images 20 and 21 are of an event labeled deer."""
    names = {image.id: image.name for image in images.load_all_images(db)}
    document = {
        "images": [{"id": one, "file_name": names[one], "seq_id": "s", "location": 7} for one in (20, 21)],
        "categories": [{"id": 0, "name": "empty"}, {"id": 1, "name": "deer"}],
        "annotations": [{"id": 1, "image_id": 20, "category_id": 1, "sequence_level_annotation": True}],
    }
    (folder / "events.json").write_text(json.dumps(document))
    bring(db.paths.project, folder / "events.json")
    assert event_labels.count(db) == 1


def get_page_state(option, folder: Path) -> dict[str, Any]:
    """Return the widgets' values that choose CHOSEN of an option."""
    if option.field in TYPED:
        return TYPED[option.field]
    value = CHOSEN[option.field]
    if option.widget.kind == WidgetKind.PATH:
        path = folder / "stations.csv"
        path.write_text("deploymentID,latitude,longitude\ntrap,51,4.5\n")
        return {option.widget.key: str(path)}
    value = 100 * value if option.widget.kind == WidgetKind.PERCENT else value
    return {option.widget.key: list(value) if isinstance(value, tuple) else value}


@pytest.mark.parametrize(
    ("kind", "names"),
    mark_slow_after(
        1,
        [
            (
                "csv",
                {"unknown", "limits.expected_error", "limits.present_from", "limits.absent_to", "splits", "split_by"},
            ),
            ("csv", {"classes", "states", "annotators", "sources", "differing", "columns.long", "license", "cite"}),
            (
                "csv",
                {
                    "accepted_precision",
                    "accepted_confidence",
                    "only_complete",
                    "only_labeled",
                    "set_aside",
                    "croissant",
                },
            ),
            ("csv", {"event_labels", "columns.chosen", "columns.seconds", "pseudonyms", "raw", "auto_accepted"}),
            ("camtrap-dp", {"deployments", "images", "pixels", "splits", "seed"}),
        ],
    ),
    ids=lambda given: given if isinstance(given, str) else None,
)
def test_export_page_shows_the_command_with_the_flags_set_by_its_widgets(rich, tmp_path, kind, names):
    state: dict[str, Any] = {}
    options = [option for option in VALUES if option.field in names]
    for option in options:
        state |= get_page_state(option, tmp_path)
    test = page(rich, format=kind, **state)
    drawn = {one.key for one in test.main if getattr(one, "key", None)} | set(test.session_state["kept_values"])
    [line] = [one.value for one in test.code if one.value.startswith("annotator export")]
    flags = {word.partition("=")[0] for word in shlex.split(line)}
    for option in options:
        assert option.widget.key in drawn, option.field
        assert option.flag in flags or option.field == "columns.chosen", f"{option.flag} is not in {line}"
    others = [option for option in VALUES if option.field not in {*names, "splits", "unknown"}]
    assert not flags & {option.flag for option in others}


def test_export_page_widget_test_is_parametrized_with_every_option():
    [mark] = [
        mark
        for mark in test_export_page_shows_the_command_with_the_flags_set_by_its_widgets.pytestmark
        if mark.name == "parametrize"
    ]
    assert set().union(*(one.values[1] for one in mark.args[1])) == {option.field for option in VALUES}


@pytest.mark.slow
def test_export_page_download_includes_event_labels_when_their_checkbox_is_checked(rich):
    names = {image.id: image.name for image in images.load_all_images(rich)}
    for ticked, expected in ((False, ""), (True, "1")):
        press(page(rich, export_event_labels=ticked))
        rows = {row["image"]: row for row in csv.DictReader(io.StringIO(content()["labels.csv"].decode()))}
        assert [rows[names[one]]["deer"] for one in (20, 21)] == [expected] * 2
    test = page(rich, format="camtrap-dp")
    assert "export_event_labels" not in {box.key for box in test.checkbox}, "this format has its own place for them"


@pytest.mark.slow
def test_export_page_hides_the_event_label_checkbox_without_event_labels(db):
    assert not {"export_event_labels", "with_set_aside"} & {box.key for box in page(db).checkbox}


@pytest.mark.slow
def test_export_page_adds_a_readable_deployments_table_to_the_camtrap_dp_package(db, tmp_path):
    path = tmp_path / "stations.csv"
    path.write_text("deploymentID,latitude,longitude\ndeployment,51,4.5\n")
    test = press(page(db, format="camtrap-dp", export_deployments=str(path)))
    rows = csv.DictReader(io.StringIO(content()["labels/deployments.csv"].decode()))
    assert ("deployment", "51", "4.5") in [(row["deploymentID"], row["latitude"], row["longitude"]) for row in rows]
    assert not test.error
    for wrong, words in (
        ("stations.csv", "not a whole path"),
        (tmp_path / "gone.csv", "nothing at"),
        (tmp_path, "file"),
    ):
        test = page(db, format="camtrap-dp", export_deployments=str(wrong))
        assert any(words in one.value for one in test.error)
        assert test.button(key="export_start").disabled
    (tmp_path / ".keys.csv").write_text("secret")
    test = page(db, format="camtrap-dp", export_deployments=str(tmp_path / ".keys.csv"))
    assert any("hidden" in one.value for one in test.error) and not any("secret" in one.value for one in test.error)
    test = page(db, format="csv", export_deployments=str(path))
    assert not test.error and "export_deployments" not in {one.key for one in test.text_input}


def test_export_format_refuses_options_of_other_formats():
    jsonl, package = (find_format(name, "write") for name in ("jsonl", "camtrap-dp"))
    assert "no place for it" in choose("deployments").problems_of_format(jsonl)[0]
    assert not choose("deployments").problems_of_format(package)
    assert "labels of events as such" in choose("event_labels").problems_of_format(package)[0]
    assert choose("deployments").list_format_values()["deployments"] == CHOSEN["deployments"]
    assert not Choices(images="none").problems_of_format(jsonl)
    assert Choices(images="copy", deployments="x").problems_of_format(jsonl)[1:], "all problems are told"


# ---- a format with an option of its own: its file and the table

FORMAT_FILE, TABLE_FILE = "exchange/formats/json_lines.py", "exchange/exports/export_options.py"
WRITER = """
def write_marked_lines(view: View, output: Output) -> None:
    write_lines(view, output)
    with output.open_text(".mark.txt") as file:
        file.write(view.options["mark"])


JSONL = Format("""
ROW = """    ExportOption(
        "mark",
        "--mark",
        "Of jsonl: text of one more file.",
        PageWidget(WidgetKind.TEXT, "export_mark", "Mark", PageSection.TABLE),
        str,
        formats=("jsonl",),
    ),
)
"""
PAGE = """
from annotator.ui.access import served_project
from streamlit.testing.v1 import AppTest
from harness.page_scripts import SCRIPT, fine
served_project.open_project("birds")
test = AppTest.from_string(SCRIPT.format("export"), default_timeout=60)
test.session_state["name"], test.session_state["format"] = "Ann", "jsonl"
test.session_state["export_mark"] = "by page"
fine(test.run())
print([one.label for one in test.text_input], [one.value for one in test.code])
"""


@pytest.fixture
def extended(project, tmp_path) -> Path:
    """A copy of the packages in which jsonl has an option --mark, next to a project."""
    folder = tmp_path / "copy"
    for name in ("annotator", "models"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new in (
        (FORMAT_FILE, "JSONL = Format(", WRITER.lstrip()),
        (FORMAT_FILE, "    write=write_lines,", "    write=write_marked_lines,"),
        (TABLE_FILE, "    set_aside: bool = False\n", '    set_aside: bool = False\n    mark: str = ""\n'),
        (TABLE_FILE, "    ),\n)\n", f"    ),\n{ROW}"),
    ):
        path = folder / "annotator" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has not one {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")
    shutil.copytree(project, folder / "birds")
    return folder


def run(folder: Path, *words: str, code: int = 0) -> str:
    paths = os.pathsep.join([str(folder), str(folder / "models"), *sys.path])  # those of test modules, too
    done = subprocess.run(
        [sys.executable, "-P", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.process
def test_export_option_declared_by_a_format_works_in_command_python_and_page(extended):
    export = ("-m", "annotator", "export", "birds")
    assert "Of jsonl: text of one more file." in run(extended, "-m", "annotator", "export", "--help")
    run(extended, *export, "out.jsonl", "--format", "jsonl", "--mark", "by hand")
    assert (extended / "out.mark.txt").read_text() == "by hand"
    assert "--mark belongs to other formats than csv" in run(extended, *export, "out.csv", "--mark", "x", code=1)
    program = (
        "import annotator; annotator.open('birds').export('p.jsonl', 'jsonl', annotator.Choices(mark='by python'))"
    )
    run(extended, "-c", program)
    assert (extended / "p.mark.txt").read_text() == "by python"
    drawn = run(extended, "-c", PAGE)
    assert "'Mark'" in drawn and "'--mark=by page'" in drawn

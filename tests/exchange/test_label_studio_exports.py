"""Label Studio's exports as people have them: JSON with ids of predictions, JSON-MIN, CSV, one control and several."""

import csv
import json

import pytest
from conftest import draw
from harness.formats_view import read
from harness.tables import over

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import FORMATS
from annotator.exchange.imports.label_files import match_formats
from annotator.exchange.reading.reading_options import NONE_VALUE, ReadingOptions
from annotator.records import ABSENT, PRESENT, UNSURE

LABEL_STUDIO = FORMATS["label-studio"]
AFTER = {"annotator": 1, "annotation_id": 1, "created_at": "2026-01-02T03:04:05Z", "updated_at": "", "lead_time": 3.5}
IMAGE = "/data/upload/1/0a1b2c3d-a.jpg"


def choices(control: str, *names: str, kind: str = "choices"):
    return {"type": kind, "from_name": control, "to_name": "image", "value": {kind: list(names)}}


def tasks_of(*results, **more):
    return [{"id": 1, "data": {"image": IMAGE}, "annotations": [{"result": each}]} | more for each in results]


def minimal(*controls, **data):
    return [{"image": IMAGE, **data, "id": number, **each, **AFTER} for number, each in enumerate(controls)]


def answers(path, **told):
    """The answers of all items as (class, state), and the decisions that have to be settled."""
    problems = Problems()
    contents = LABEL_STUDIO.read(path, problems, ReadingOptions(**told))
    found = [[(given.class_name, given.state) for given in item.labels] for item in contents.items]
    assert not problems.sentences
    return found, [one.field for one in contents.interpretations if not one.is_sure]


def write_json(tmp_path, content, name="export"):
    path = tmp_path / name
    path.write_text(json.dumps(content))
    assert [format_.name for format_, _ in match_formats(path) if not format_.is_general] == ["label-studio"]
    return path


def test_label_studio_reader_ignores_prediction_ids(tmp_path):
    path = write_json(tmp_path, tasks_of([choices("choice", "fox")], predictions=[286, "287"]))
    assert answers(path) == ([[("fox", PRESENT)]], [])


def test_label_studio_classes_include_the_control_name_with_several_controls(tmp_path):
    tasks = tasks_of([choices("size", "large"), choices("damage", "large")], [choices("damage", "none at all")])
    path = write_json(tmp_path, tasks)
    found, open_ = answers(path)
    assert found == [[("size: large", PRESENT), ("damage: large", PRESENT)], [("damage: none at all", PRESENT)]]
    assert open_ == []
    assert answers(path, label_columns=("size",)) == ([[("large", PRESENT)], []], [])
    contents = LABEL_STUDIO.read(path, Problems(), ReadingOptions(label_columns=("size",)))
    assert [dict(item.attributes) for item in contents.items] == [{"damage": "large"}, {"damage": "none at all"}]
    with pytest.raises(AnnotatorError, match="--label-column colour: there is no such control"):
        answers(path, label_columns=("colour",))


def test_label_studio_control_with_yes_and_no_choices_becomes_a_class(tmp_path):
    results = [choices("fox_here", "Yes"), choices("deer_here", "No")], [choices("deer_here", "Unsure")]
    path = write_json(tmp_path, tasks_of(*results))
    assert answers(path) == ([[("fox_here", PRESENT), ("deer_here", ABSENT)], [("deer_here", UNSURE)]], [])
    assert answers(path, label_columns=("fox_here", "deer_here"))[0][0] == [
        ("fox_here: Yes", PRESENT),
        ("deer_here: No", PRESENT),
    ]


def test_label_studio_automatic_interpretation_passed_as_an_option_gives_the_same_labels(tmp_path):
    kinds = [choices("size", "large"), choices("damage", "none at all"), choices("blurry", "No")]
    contents = LABEL_STUDIO.read(write_json(tmp_path, tasks_of(kinds)), Problems(), ReadingOptions())
    (decided,) = [one for one in contents.interpretations if one.field in ("label_columns", "class_columns")]
    told = {decided.field: tuple(decided.value.split(","))}
    expected = [[("size: large", PRESENT), ("damage: none at all", PRESENT), ("blurry", ABSENT)]]
    assert answers(tmp_path / "export") == answers(tmp_path / "export", **told) == (expected, [])
    assert answers(tmp_path / "export", label_columns=("size",))[0] == [[("large", PRESENT), ("blurry", ABSENT)]]


def test_label_studio_reader_asks_about_yes_and_no_of_a_generic_control(tmp_path):
    path = write_json(tmp_path, tasks_of([choices("choice", "Yes")], [choices("choice", "No")]))
    assert answers(path)[1] == ["class_columns"]
    assert answers(path, label_columns=("choice",)) == ([[("Yes", PRESENT)], [("No", PRESENT)]], [])


@over(words=[("1", "0"), ("positive", "negative"), ("x", "y"), ("unknown", "unsure"), ("yes", "fox")])
def test_label_studio_reader_treats_other_choice_values_as_classes(words, tmp_path_factory):
    path = write_json(tmp_path_factory.mktemp("set"), tasks_of(*([choices("mood", word)] for word in words)))
    assert answers(path) == ([[(word, PRESENT)] for word in words], [])


def test_label_studio_choices_get_the_control_name_unless_they_match_box_classes(tmp_path):
    box = choices("label", "fox", kind="rectanglelabels")
    path = write_json(tmp_path, tasks_of([choices("quality", "good"), box]))
    assert answers(path) == ([[("quality: good", PRESENT), ("fox", PRESENT)]], [])
    path = write_json(tmp_path, tasks_of([choices("species", "fox", "deer"), box]), "same words")
    assert answers(path) == ([[("fox", PRESENT), ("deer", PRESENT)]], [])


def test_label_studio_reader_asks_whether_the_choice_empty_is_a_class(tmp_path):
    path = write_json(tmp_path, tasks_of([choices("species", "fox")], [choices("species", "empty")]))
    assert answers(path)[1] == ["empty_label"]
    assert answers(path, empty_label=(NONE_VALUE,)) == ([[("fox", PRESENT)], [("empty", PRESENT)]], [])
    contents = LABEL_STUDIO.read(path, Problems(), ReadingOptions(empty_label=("empty",)))
    assert [(len(item.labels), item.exhaustive) for item in contents.items] == [(1, False), (0, True)]


@over(
    rows__expected=[
        (minimal({"choice": "fox"}, {"choice": {"choices": ["fox", "deer"]}}), [["fox"], ["fox", "deer"]]),
        (minimal({"choice": "fox"}, station="A", camera="B"), [["fox"]]),
        (minimal({"label": [{"x": 1, "rectanglelabels": ["fox"]}], "rating": [{"rating": 3}]}), [["fox"]]),
        (minimal({"taxon": [{"taxonomy": [["animal", "fox"]]}]}), [["fox"]]),
        (minimal({"a": "fox", "b": "deer"}), [["a: fox", "b: deer"]]),
        (minimal({"choice": "fox", "comment": "x" * 200}), [["fox"]]),
    ]
)
def test_json_min_fields_between_id_and_annotator_are_controls(rows, expected, tmp_path_factory):
    path = write_json(tmp_path_factory.mktemp("min"), rows)
    found, open_ = answers(path)
    assert ([[name for name, _ in labels] for labels in found], open_) == (expected, [])


def test_json_min_reader_asks_for_the_controls_when_fields_are_sorted(tmp_path):
    rows = minimal({"choice": "fox"}, {"choice": "deer"}, station="A")
    path = write_json(tmp_path, [dict(sorted(row.items())) for row in rows])
    assert answers(path)[1] == ["label_columns"]
    assert answers(path, label_columns=("choice",)) == ([[("fox", PRESENT)], [("deer", PRESENT)]], [])


@over(delimiter=[",", "\t"])
def test_label_studio_table_gives_the_labels_annotator_and_time_of_its_json_min(delimiter, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "export"
    several = json.dumps({"choices": ["fox", "deer"]})
    rows = [{"image": IMAGE, "id": 1, "choice": choice, **AFTER} for choice in ("fox", several)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, sorted(rows[0]), delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        writer.writerows(rows)
    assert [format_.name for format_, _ in match_formats(path) if not format_.is_general] == ["label-studio"]
    assert answers(path) == ([[("fox", PRESENT)], [("fox", PRESENT), ("deer", PRESENT)]], [])
    (first, _), _ = read(LABEL_STUDIO, path)[0].items, None
    assert (first.image, first.labels[0].annotator, first.labels[0].decided_at) == ("a.jpg", "user 1", 1767323045.0)


def test_label_studio_import_with_an_unresolved_ambiguity_stores_nothing(annotator, tmp_path):
    draw(tmp_path / "photos/a.jpg")
    path = write_json(tmp_path, tasks_of([choices("choice", "Yes")]), "tasks.json")
    words = ["import", "new", path, "--images", tmp_path / "photos", "--yes"]
    assert "--class-columns" in annotator(*words, code=1).stderr
    assert not (tmp_path / "new/project.db").exists()
    annotator(*words, "--class-columns", "choice", "--class-map", _map(tmp_path, "choice", "fox"))
    annotator("export", "new", "out.csv")
    assert (tmp_path / "out.csv").read_text() == "image,fox\na.jpg,1\n"


def _map(tmp_path, name: str, class_: str):
    path = tmp_path / "map.csv"
    path.write_text(f"{name},{class_}\n")
    return path

"""JSON exports of labeling tools: answers of people are read, all else is left out with a count."""

import json

import pytest
from harness.formats_view import read
from harness.tables import over
from harness.tool_files import (
    BDD_LABEL,
    LABELBOX_LABEL,
    TOOL_FILES,
    argilla_record,
    as_lines,
    bdd_frame,
    encord_row,
    labelbox_row,
    manifest_row,
    prodigy_row,
    vertex_row,
)

from annotator.errors import AnnotatorError
from annotator.exchange.formats import FORMATS
from annotator.exchange.imports.label_files import match_formats

LEFT_OUT = {
    "sagemaker": "Not read: 1 label is a model's (human-annotated: no) (first: s3://bucket/01.jpg).",
    "labelbox": "Not read: 1 label was skipped (first: 01.jpg).",
    "prodigy": "Not read: 1 record was rejected (first: images/01.jpg).",
    "darwin": "Not read: 1 annotation is a model's (first: 01.jpg).",
    "superannotate": "Not read: 1 image has the status InProgress (first: 01.jpg).",
    "scale-ai": "Not read: 1 task is pending (first: https://example.org/01.jpg).",
    "encord": "Not read: 1 image has the state RETURNED (first: 01.jpg).",
    "bdd100k": "Not read: 1 label is a model's (it has a score) (first: 01.jpg).",
    "argilla": "Not read: 1 response was not submitted (first: https://example.org/01.jpg).",
}


def read_text(tmp_path, name: str, text: str):
    """Return (image -> class -> state, sentences) of a file of a tool."""
    path = tmp_path / TOOL_FILES[name][0]
    path.write_text(text)
    contents, problems = read(FORMATS[name], path)
    labels: dict[str, dict[str, int]] = {}
    for item in contents.items:
        labels.setdefault(item.image, {}).update({given.class_name: given.state for given in item.labels})
    assert not problems.sentences
    return labels, contents.sentences


@over(name=list(TOOL_FILES))
def test_tool_export_is_recognized_by_one_format_with_only_peoples_answers(name, tmp_path):
    labels, said = read_text(tmp_path, name, TOOL_FILES[name][1])
    assert [format_.name for format_, _ in match_formats(tmp_path / TOOL_FILES[name][0])] == [name]
    assert {image[-6:]: given for image, given in labels.items()} == {"00.jpg": {"fox": 1}, "01.jpg": {}}
    assert name not in LEFT_OUT or LEFT_OUT[name] in said


@over(name=list(TOOL_FILES))
def test_tool_export_without_one_key_of_its_signature_is_of_another_format(name, tmp_path):
    path = tmp_path / "file.json"
    key = {"sagemaker": "human-annotated", "labelbox": "data_row", "prodigy": "answer", "argilla": "suggestions"}
    key |= {"imaterialist": "imageId", "darwin": "item", "superannotate": "instances", "scale-ai": "task_id"}
    key |= {"encord": "label_hash", "vertex-ai": "imageGcsUri", "bdd100k": "name"}
    path.write_text(TOOL_FILES[name][1].replace(f'"{key[name]}"', '"other"'))
    assert name not in [format_.name for format_, _ in match_formats(path)]


def test_manifest_of_multi_label_and_detection_jobs_names_classes_by_their_class_map(tmp_path):
    row = manifest_row("a.jpg", "yes")
    names = {"human-annotated": "yes", "class-map": {"0": "fox", "2": "deer"}}
    row |= {
        "animal": [0, 2],
        "animal-metadata": {**names, "type": "groundtruth/image-classification-multilabel"},
    }
    assert read_text(tmp_path, "sagemaker", as_lines(row))[0] == {"a.jpg": {"fox": 1, "deer": 1}}
    row |= {"animal": {"annotations": [{"class_id": 2}, {"class_id": 2}]}}
    row |= {"animal-metadata": {**names, "type": "groundtruth/object-detection"}}
    assert read_text(tmp_path, "sagemaker", as_lines(row))[0] == {"a.jpg": {"deer": 1}}


def test_labelbox_choices_of_two_classifications_carry_the_names_of_both(tmp_path):
    season = {"name": "season", "radio_answer": {"name": "summer"}}
    notes = {"name": "notes", "text_answer": {"content": "by the river"}}
    annotations = LABELBOX_LABEL["annotations"]
    annotations = {**annotations, "classifications": [*annotations["classifications"], season, notes]}
    label = {**LABELBOX_LABEL, "annotations": annotations}
    labels, _ = read_text(tmp_path, "labelbox", as_lines(labelbox_row("a.jpg", label)))
    assert labels == {"a.jpg": {"animals: fox": 1, "season: summer": 1}}


def test_labelbox_names_of_objects_are_classes(tmp_path):
    label = {**LABELBOX_LABEL, "annotations": {"objects": [{"name": "deer", "bounding_box": {}}]}}
    assert read_text(tmp_path, "labelbox", as_lines(labelbox_row("a.jpg", label)))[0] == {"a.jpg": {"deer": 1}}


def test_labelbox_labels_that_a_review_sent_back_are_left_out(tmp_path):
    row = {"data_row": {"id": "c1", "external_id": "a.jpg"}}
    project = {"labels": [LABELBOX_LABEL], "project_details": {"workflow_status": "IN_REWORK"}}
    row |= {"projects": {"p1": project}}
    labels, said = read_text(tmp_path, "labelbox", as_lines(row))
    assert labels == {"a.jpg": {}} and "Not read: 1 label has the state IN_REWORK (first: a.jpg)." in said
    row |= {"projects": {"p1": {**project, "project_details": {"workflow_status": "DONE"}}}}
    assert read_text(tmp_path, "labelbox", as_lines(row))[0] == {"a.jpg": {"fox": 1}}


def test_prodigy_label_of_an_accepted_binary_record_is_present(tmp_path):
    record = {"image": "a.jpg", "label": "fox", "answer": "accept", "_task_hash": 1, "_input_hash": 2}
    ignored = {**record, "image": "b.jpg", "answer": "ignore"}
    labels, said = read_text(tmp_path, "prodigy", as_lines(record, ignored))
    assert labels == {"a.jpg": {"fox": 1}, "b.jpg": {}}
    assert "Not read: 1 record was ignored (first: b.jpg)." in said


def test_prodigy_choice_that_is_no_option_is_a_problem(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(as_lines(prodigy_row("a.jpg", [7], "accept")))
    contents, problems = read(FORMATS["prodigy"], path)
    assert list(contents.items) == []
    assert problems.sentences == ["line 1: `accept` has '7', which is none of its options: 1, 2"]


def test_argilla_submitted_response_counts_in_a_pending_record(tmp_path):
    submitted = [{"value": "fox", "user_id": "ann", "status": "submitted"}]
    text = json.dumps([argilla_record("a.jpg", "pending", animals=submitted)])
    assert read_text(tmp_path, "argilla", text)[0] == {"a.jpg": {"fox": 1}}


def test_imaterialist_without_class_names_is_refused_with_the_key_to_add(tmp_path):
    path = tmp_path / "train.json"
    path.write_text(TOOL_FILES["imaterialist"][1].replace('"categories"', '"others"'))
    [(format_, _)] = match_formats(path)
    with pytest.raises(AnnotatorError, match=r'label ids and no class names. Add .*"categories": \[\{"id"'):
        read(format_, path)


@pytest.mark.slow
@over(name=list(TOOL_FILES), value=["null", "1e999", '"\\ud800"', "[" * 300, "[[]]", "{}"])
def test_tool_export_with_wrong_types_is_read_or_refused_without_a_crash(name, value, tmp_path):
    file, text = TOOL_FILES[name]
    path = tmp_path / file
    for place in ('"fox"', '["fox"]', "0", '"00.jpg"', "[]", "{}", "[1]"):
        path.write_text(text.replace(place, value))
        match_formats(path)
        try:
            contents, _ = read(FORMATS[name], path)
            list(contents.items)
        except AnnotatorError:
            pass


def test_vertex_csv_without_header_is_read_with_splits_and_boxes(tmp_path):
    path = tmp_path / "import.csv"
    path.write_text(
        "TEST,gs://b/a.jpg,fox,deer\n,gs://b/b.jpg,owl\ngs://b/c.jpg\nTRAIN,gs://b/d.jpg,fox,0.1,0.2,,,0.5,0.6,,\n"
    )
    assert [format_.name for format_, _ in match_formats(path)] == ["vertex-ai"]
    contents, problems = read(FORMATS["vertex-ai"], path)
    items = list(contents.items)
    labels = {item.image: [given.class_name for given in item.labels] for item in items}
    assert labels == {"a.jpg": ["fox", "deer"], "b.jpg": ["owl"], "c.jpg": [], "d.jpg": ["fox"]}
    assert [item.attributes.get("split") for item in items] == ["test", None, None, "train"]
    assert not problems.sentences and not contents.interpretations


def test_vertex_row_of_another_form_is_a_problem_and_a_number_a_question(tmp_path):
    path = tmp_path / "import.csv"
    path.write_text("TRAIN,gs://b/a.jpg,fox\nHOLDOUT,gs://b/b.jpg,owl\nTEST,gs://b/c.jpg,0.7\n")
    contents, problems = read(FORMATS["vertex-ai"], path)
    assert [one.value for one in contents.interpretations] == ["0.7"]
    list(contents.items)
    assert problems.sentences == ["line 2: 'HOLDOUT,gs://b/b.jpg,owl' is not a split, a gs:// address and labels"]


def test_encord_objects_of_a_group_are_read_without_those_of_a_model(tmp_path):
    row = encord_row("group", "COMPLETED")
    boxes = [{"name": name, "objectHash": name, "manualAnnotation": name == "owl"} for name in ("owl", "deer")]
    units = {
        "u1": {"data_title": "a.jpg", "labels": {"objects": boxes, "classifications": []}},
        "u2": {"data_title": "b.jpg", "labels": {}},
    }
    row |= {"data_type": "img_group", "data_units": units}
    row |= {"object_answers": {"owl": {"classifications": [{"name": "age", "answers": []}]}}}
    labels, said = read_text(tmp_path, "encord", json.dumps(row, indent=1))
    assert labels == {"a.jpg": {"owl": 1}, "b.jpg": {}}
    assert "Not read: 1 label is a model's (manualAnnotation: false) (first: a.jpg)." in said
    assert "Not read: 1 object has answers of its own (first: a.jpg)." in said


def test_encord_stage_of_a_workflow_that_is_not_complete_is_left_out(tmp_path):
    row = {**encord_row("a.jpg", "COMPLETED"), "workflow_graph_node": {"title": "Annotate 1"}}
    labels, said = read_text(tmp_path, "encord", as_lines(row))
    assert labels == {"a.jpg": {}} and "Not read: 1 image has the state Annotate 1 (first: a.jpg)." in said


def test_label_of_a_tool_that_looks_like_a_number_is_a_question(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(as_lines(vertex_row("a.jpg", "7")))
    assert [one.value for one in read(FORMATS["vertex-ai"], path)[0].interpretations] == ["7"]


def test_bdd100k_attributes_of_images_are_a_question_and_undefined_is_unanswered(tmp_path):
    path = tmp_path / "labels.json"
    frames = [
        bdd_frame("a.jpg", BDD_LABEL, weather="rainy", scene="undefined"),
        bdd_frame("b.jpg", weather="clear", scene="highway"),
    ]
    path.write_text(json.dumps(frames))
    contents, _ = read(FORMATS["bdd100k"], path)
    assert [(one.value, one.is_sure) for one in contents.interpretations] == [("weather,scene", False)]
    labels = {item.image: [given.class_name for given in item.labels] for item in contents.items}
    assert labels == {"a.jpg": ["fox", "weather: rainy"], "b.jpg": ["weather: clear", "scene: highway"]}


def test_bdd100k_file_per_image_and_scalabel_frames_have_the_same_labels(tmp_path):
    one = {"name": "a", "attributes": {}, "frames": [{"timestamp": 1, "objects": [BDD_LABEL, {**BDD_LABEL, "id": 2}]}]}
    assert read_text(tmp_path, "bdd100k", json.dumps(one, indent=1))[0] == {"a": {"fox": 1}}
    frames = {"frames": [bdd_frame("a.jpg", BDD_LABEL), {**bdd_frame("b.jpg"), "labels": None}], "config": {}}
    assert read_text(tmp_path, "bdd100k", json.dumps(frames, indent=1))[0] == {"a.jpg": {"fox": 1}, "b.jpg": {}}

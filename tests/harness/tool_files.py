"""Tiny exports of labeling tools by format: file name and text. In each, a person says that a fox is on 00.jpg.

01.jpg has no answer of a person: a model's, a rejected or an open one.
"""

import json

MANIFEST_METADATA = {
    "type": "groundtruth/image-classification",
    "class-name": "fox",
    "job-name": "labeling-job/animals",
}
CHECKLIST = {"name": "animals", "checklist_answers": [{"name": "fox", "classifications": []}]}
LABELBOX_LABEL = {
    "label_details": {"created_by": "ann@example.org", "created_at": "2026-05-01T10:00:00+00:00"},
    "performance_details": {"skipped": False},
    "annotations": {"objects": [], "classifications": [CHECKLIST]},
}
PRODIGY_OPTIONS = [{"id": 1, "text": "fox"}, {"id": 2, "text": "deer"}]


def manifest_row(image: str, human: str) -> dict[str, object]:
    """Return a row of SageMaker Ground Truth."""
    return {
        "source-ref": f"s3://bucket/{image}",
        "animal": 0,
        "animal-metadata": {**MANIFEST_METADATA, "human-annotated": human},
    }


def labelbox_row(image: str, *labels: object) -> dict[str, object]:
    """Return a data row of Labelbox with labels of one project."""
    return {"data_row": {"id": "c1", "external_id": image}, "projects": {"p1": {"name": "p", "labels": list(labels)}}}


def prodigy_row(image: str, chosen: list[int], answer: str) -> dict[str, object]:
    """Return a record of Prodigy's choice recipe."""
    return {"image": f"images/{image}", "options": PRODIGY_OPTIONS, "accept": chosen, "answer": answer}


def argilla_record(image: str, status: str, **responses: object) -> dict[str, object]:
    """Return a record of Argilla with a suggestion."""
    suggestions = {"animals": {"value": ["deer"], "score": [0.9], "agent": "model"}}
    fields = {"image": f"https://example.org/{image}"}
    return {
        "id": image,
        "fields": fields,
        "metadata": {},
        "suggestions": suggestions,
        "responses": responses,
        "status": status,
    }


def darwin_record(image: str, *annotations: object) -> dict[str, object]:
    """Return a file of V7 about one image."""
    item = {"name": image, "path": "/", "slots": [{"type": "image", "slot_name": "0"}]}
    return {"version": "2.0", "schema_ref": "2.0/schema.json", "item": item, "annotations": list(annotations)}


def superannotate_record(image: str, status: str, **instance: object) -> dict[str, object]:
    """Return a file of SuperAnnotate about one image with one instance."""
    metadata = {"name": image, "width": 9, "height": 9, "status": status}
    instances = [{"type": "tag", "className": "fox", "classId": 1, "attributes": [], **instance}]
    return {"metadata": metadata, "instances": instances, "tags": [], "comments": []}


def scale_task(image: str, status: str, **more: object) -> dict[str, object]:
    """Return a task of Scale AI whose response is a box of a fox."""
    params = {"attachment": f"https://example.org/{image}", "attachment_type": "image"}
    response = {"annotations": [{"label": "fox", "left": 1, "top": 1, "width": 1, "height": 1}]}
    task = {"task_id": image, "type": "imageannotation", "status": status}
    return {**task, "params": params, "response": response, **more}


def encord_row(image: str, status: str, **label: object) -> dict[str, object]:
    """Return a label row of Encord with an answer of a checklist."""
    given = {"name": "animals", "classificationHash": "h1", "featureHash": "f1", "manualAnnotation": True, **label}
    answer = {"name": "animals", "answers": [{"name": "fox", "featureHash": "f2"}]}
    return {
        "label_hash": image,
        "data_title": image,
        "data_type": "image",
        "annotation_task_status": status,
        "data_units": {"u1": {"data_title": image, "labels": {"objects": [], "classifications": [given]}}},
        "object_answers": {},
        "classification_answers": {"h1": {"classificationHash": "h1", "classifications": [answer]}},
    }


def vertex_row(image: str, *labels: str) -> dict[str, object]:
    """Return a line of Vertex AI."""
    annotations = [{"displayName": label} for label in labels]
    split = {"aiplatform.googleapis.com/ml_use": "training"}
    address = f"gs://bucket/{image}"
    return {"imageGcsUri": address, "classificationAnnotations": annotations, "dataItemResourceLabels": split}


def bdd_frame(image: str, *labels: object, **attributes: str) -> dict[str, object]:
    """Return a frame of BDD100K."""
    return {"name": image, "attributes": attributes, "timestamp": 10000, "labels": list(labels)}


def as_lines(*records: object) -> str:
    """Return JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


BDD_LABEL = {"id": "0", "category": "fox", "box2d": {"x1": 1, "y1": 1, "x2": 2, "y2": 2}}
ONE_RESPONSE = [{"value": ["fox"], "user_id": "ann"}]
TOOL_FILES = {
    "sagemaker": ("output.manifest", as_lines(manifest_row("00.jpg", "yes"), manifest_row("01.jpg", "no"))),
    "labelbox": (
        "labelbox.ndjson",
        as_lines(
            labelbox_row("00.jpg", LABELBOX_LABEL),
            labelbox_row("01.jpg", {**LABELBOX_LABEL, "performance_details": {"skipped": True}}),
        ),
    ),
    "prodigy": (
        "prodigy.jsonl",
        as_lines(prodigy_row("00.jpg", [1], "accept"), prodigy_row("01.jpg", [2], "reject")),
    ),
    "argilla": (
        "argilla.json",
        json.dumps(
            [
                argilla_record("00.jpg", "completed", animals=ONE_RESPONSE),
                argilla_record("01.jpg", "pending", animals=[{"value": ["deer"], "user_id": "ann", "status": "draft"}]),
            ]
        ),
    ),
    "imaterialist": (
        "imaterialist.json",
        json.dumps(
            {
                "images": [{"url": f"https://example.org/{one}.jpg", "imageId": one} for one in ("00", "01")],
                "annotations": [{"imageId": "00", "labelId": ["66"]}, {"imageId": "01", "labelId": []}],
                "categories": [{"id": "66", "name": "fox"}, {"id": "95", "name": "deer"}],
            }
        ),
    ),
    "darwin": (
        "darwin.json",
        json.dumps(
            [
                darwin_record("00.jpg", {"id": "1", "name": "fox", "tag": {}}),
                darwin_record("01.jpg", {"id": "2", "name": "deer", "tag": {}, "inference": {"confidence": 0.9}}),
            ],
            indent=1,
        ),
    ),
    "superannotate": (
        "superannotate.json",
        json.dumps(
            [superannotate_record("00.jpg", "Completed"), superannotate_record("01.jpg", "InProgress")], indent=1
        ),
    ),
    "scale-ai": ("scale.json", json.dumps([scale_task("00.jpg", "completed"), scale_task("01.jpg", "pending")])),
    "encord": ("encord.json", json.dumps([encord_row("00.jpg", "COMPLETED"), encord_row("01.jpg", "RETURNED")])),
    "vertex-ai": ("vertex.jsonl", as_lines(vertex_row("00.jpg", "fox"), vertex_row("01.jpg"))),
    "bdd100k": (
        "bdd100k.json",
        json.dumps([bdd_frame("00.jpg", BDD_LABEL), bdd_frame("01.jpg", {**BDD_LABEL, "score": 0.5})], indent=1),
    ),
}
"""Format -> (file name, text)."""

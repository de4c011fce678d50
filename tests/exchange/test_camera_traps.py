"""Formats of camera traps: what is a label of an image is one; events, machines and empties are what they are."""

import csv
import json
import sqlite3
import zipfile
from contextlib import closing

import numpy as np
import pytest
from conftest import draw
from harness.named_images import bring

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.formats.camtrap_dp_writer import DEPLOYMENT_COLUMNS, MEDIA_COLUMNS, OBSERVATION_COLUMNS
from annotator.exchange.imports import import_plan
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.queues import image_queue
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.imports import past_imports
from annotator.store.labels import event_labels
from annotator.store.runs import prediction_sources

STATES = {PRESENT: "present", ABSENT: "absent", UNSURE: "unsure"}


def labels_of(project) -> dict[str, dict[str, str]]:
    """Image -> class -> state, of images with an answer."""
    found: dict[str, dict[str, str]] = {}
    query = """SELECT i.name, c.name, l.state FROM label l JOIN image i ON i.id = l.image_id
        JOIN class c ON c.id = l.class_id"""
    for image, class_, state in Database(project).tuples(query):
        found.setdefault(image, {})[class_] = STATES[state]
    return found


def facts_of(project, image) -> dict[str, str]:
    query = "SELECT a.name, value FROM attribute a JOIN image i ON i.id = a.image_id WHERE i.name = ?"
    return dict(Database(project).tuples(query, [image]))


def events_of(project, image) -> list[tuple[str, str]]:
    """(Event, class) of the labels of the events of an image."""
    db = Database(project)
    return [(one.event, one.class_name) for one in event_labels.load_for_image(db, images.load_ids_by_name(db)[image])]


def write_table(path, rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def table(path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# ---- COCO Camera Traps


@pytest.fixture
def lila(tmp_path):
    """Two sequences of two images, an empty image and one of no sequence; labeled by image and by sequence."""
    for number in range(6):
        draw(tmp_path / "photos" / f"{number}.jpg", seed=number)
    document = {
        "info": {},
        "images": [
            {
                "id": f"i{number}",
                "file_name": f"{number}.jpg",
                "location": 7,
                "datetime": f"2020-01-01 00:00:0{number}",
                "seq_id": f"s{number // 2}",
                "frame_num": number % 2 + 1,
                "corrupt": number == 3,
            }
            for number in range(5)
        ]
        + [{"id": "i5", "file_name": "5.jpg", "location": 8}],
        "categories": [{"id": 0, "name": "empty"}, {"id": 1, "name": "deer"}, {"id": 2, "name": "fox"}],
        "annotations": [
            {"id": 1, "image_id": "i0", "category_id": 1, "sequence_level_annotation": True},
            {"id": 2, "image_id": "i1", "category_id": 1, "sequence_level_annotation": True},
            {"id": 3, "image_id": "i2", "category_id": 2, "sequence_level_annotation": False, "count": 3},
            {"id": 4, "image_id": "i4", "category_id": 0},
            {"id": 5, "image_id": "i3", "category_id": 0, "sequence_level_annotation": True},
            {"id": 6, "image_id": "i5", "category_id": 1, "sequence_level_annotation": True},
        ],
    }
    path = tmp_path / "lila.json"
    path.write_text(json.dumps(document))
    return path


def test_sequence_label_is_stored_for_the_event_only_and_empty_is_not_a_class(tmp_path, lila):
    plan = bring(tmp_path / "project", lila, images=tmp_path / "photos")
    assert labels_of(tmp_path / "project") == {
        "2.jpg": {"fox": "present"},
        "4.jpg": {"deer": "absent", "fox": "absent"},
    }
    assert [one.name for one in plan.preview.classes] == ["deer", "fox"]
    assert events_of(tmp_path / "project", "0.jpg") == [("s0", "deer")]
    assert events_of(tmp_path / "project", "1.jpg") == [("s0", "deer")]
    assert events_of(tmp_path / "project", "2.jpg") == [("s1", "")]
    assert events_of(tmp_path / "project", "4.jpg") == []
    assert plan.done
    assert plan.done.imported.event_labels == plan.preview.event_labels == 2
    assert any("1 annotation of sequences left out" in sentence for sentence in plan.sentences)
    facts = facts_of(tmp_path / "project", "2.jpg")
    assert facts == {
        "location": "7",
        "datetime": "2020-01-01 00:00:02",
        "seq_id": "s1",
        "frame_num": "1",
        "count of fox": "3",
    }
    assert facts_of(tmp_path / "project", "3.jpg")["corrupt"] == "true"


def test_event_labels_are_imported_once_and_deleted_by_undo_of_the_import(tmp_path, lila):
    plan = bring(tmp_path / "project", lila, images=tmp_path / "photos")
    assert not bring(tmp_path / "project", lila).preview.has_changes
    db = Database(tmp_path / "project")
    assert plan.done
    assert past_imports.undo(db, plan.done.imported.id, "Ann").event_labels == 1 + 1
    assert event_labels.count(db) == 0
    assert db.value("SELECT count(*) FROM event_image") == 0
    assert bring(tmp_path / "project", lila).preview.event_labels == 2
    assert events_of(tmp_path / "project", "0.jpg") == [("s0", "deer")]


def test_displayed_event_label_states_the_number_of_images_in_the_event(tmp_path, lila):
    bring(tmp_path / "project", lila, images=tmp_path / "photos")
    db = Database(tmp_path / "project")
    words = {name: event_labels.load_for_image(db, image_id) for name, image_id in images.load_ids_by_name(db).items()}
    assert words["0.jpg"][0].format_sentence() == (
        "Source: this burst of 2 images was labeled deer; not every image of it need show it."
    )
    assert words["2.jpg"][0].format_sentence() == "Source: this burst of 2 images was labeled empty."


def test_export_adds_event_labels_to_images_only_on_request_and_marks_their_source(tmp_path, lila, annotator):
    bring(tmp_path / "project", lila, images=tmp_path / "photos")
    annotator("export", "project", "plain.csv")
    assert {row["image"]: row["deer"] for row in table(tmp_path / "plain.csv")}["0.jpg"] == ""
    annotator("export", "project", "asked.csv", "--event-labels")
    deer = {row["image"]: row["deer"] for row in table(tmp_path / "asked.csv")}
    assert (deer["0.jpg"], deer["1.jpg"], deer["2.jpg"], deer["4.jpg"]) == ("1", "1", "", "0")
    rows = table(tmp_path / "asked.provenance.csv")
    assert [row["source"] for row in rows if row["image"] == "0.jpg"] == ["label of the event"]
    bring(tmp_path / "again", tmp_path / "asked.csv", images=tmp_path / "photos")
    assert "0.jpg" not in labels_of(tmp_path / "again")


def test_predictions_command_turns_event_labels_into_image_scores(tmp_path, lila, annotator):
    bring(tmp_path / "project", lila, images=tmp_path / "photos")
    assert (
        "event labels: a score of 6 cells on 4 images" in annotator("predictions", "project", "--event-labels").stdout
    )
    db = Database(tmp_path / "project")
    (source,) = prediction_sources.load_sources(db)
    ids, columns = images.load_ids_by_name(db), [class_.id for class_ in classes.load_active_classes(db)]
    scores = np.load(db.paths.predictions(source.id, source.version) / "scores.npy")
    order = np.load(db.paths.predictions(source.id, source.version) / "image_ids.npy").tolist()
    of = {name: scores[order.index(image_id)] for name, image_id in ids.items() if image_id in order}
    assert columns == list(source.class_ids)
    np.testing.assert_array_equal(of["0.jpg"], [1, np.nan])
    np.testing.assert_array_equal(of["2.jpg"], [0, 0])


def test_annotate_shows_the_labels_of_the_event(tmp_path, lila):
    bring(tmp_path / "project", lila, images=tmp_path / "photos")
    db = Database(tmp_path / "project")
    ids = images.load_ids_by_name(db)
    shown = {item.image.name: item.events for item in image_queue.load_items(db, [ids["0.jpg"], ids["4.jpg"]])}
    assert shown == {
        "0.jpg": ["Source: this burst of 2 images was labeled deer; not every image of it need show it."],
        "4.jpg": (),
    }


def test_pseudonym_export_hides_the_annotator_of_an_event_label(tmp_path, package):
    rows = [*OBSERVED, observed(1, "", "animal", "Cervus elaphus", event="e1", level="event")]
    write_table(package / "observations.csv", rows)
    bring(tmp_path / "project", package)
    export_data_set(
        Database(tmp_path / "project"), tmp_path / "out", "camtrap-dp", Choices(pseudonyms=True), lossy=True
    )
    assert [row["classifiedBy"] for row in table(tmp_path / "out" / "observations.csv")] == ["annotator elsewhere"]


def test_coco_import_asks_whether_the_category_empty_is_a_class(tmp_path):
    draw(tmp_path / "photos" / "a.jpg")
    path = tmp_path / "parking.json"
    path.write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "a.jpg"}],
                "categories": [{"id": 0, "name": "Empty"}, {"id": 1, "name": "car"}],
                "annotations": [{"id": 1, "image_id": 1, "category_id": 0}],
            }
        )
    )
    choices = import_plan.ImportOptions(images=tmp_path / "photos")
    with import_plan.prepare_import(tmp_path / "asked", path, choices, by="Ann") as plan:
        assert [(one.field, one.value, one.is_sure) for one in plan.interpretations] == [
            ("empty_label", "Empty", False)
        ]
    bring(tmp_path / "class", path, images=tmp_path / "photos", reading=ReadingOptions(empty_label=("none",)))
    assert labels_of(tmp_path / "class") == {"a.jpg": {"Empty": "present"}}
    bring(tmp_path / "nothing", path, images=tmp_path / "photos", reading=ReadingOptions(empty_label=("empty",)))
    assert labels_of(tmp_path / "nothing") == {"a.jpg": {"car": "absent"}}


# ---- Camtrap DP

MEDIA = [["mediaID", "deploymentID", "timestamp", "filePath", "filePublic", "fileName", "fileMediatype"]]
OBSERVED = [
    [
        *("observationID", "deploymentID", "mediaID", "eventID", "eventStart", "eventEnd", "observationLevel"),
        *("observationType", "scientificName", "count", "sex", "classificationMethod", "classifiedBy"),
        *("classificationTimestamp", "classificationProbability"),
    ]
]
TIMES = ("2024-05-01T06:00:00Z", "2024-05-01T06:01:00Z")


def observed(number, medium, kind, name="", *, event="", level="media", method="human", probability="", count=""):
    by = "Eva" if method == "human" else "MegaDetector"
    at = "2024-06-01T00:00:00Z" if method == "human" else ""
    start = [f"o{number}", "d1", medium, event, *TIMES, level]
    return [*start, kind, name, count, "female" if count else "", method, by, at, probability]


@pytest.fixture
def package(tmp_path):
    """Seven media of one deployment: every kind of observation, two of them in an event without labels of images."""
    folder = tmp_path / "package"
    times = [
        "2024-05-01T06:00:10Z",
        "2024-05-01T06:00:20Z",
        *(f"2024-05-02T06:00:0{number}+02:00" for number in range(5)),
    ]
    rows = []
    for number, at in enumerate(times):
        draw(folder / "media" / f"{number}.jpg", seed=number)
        rows.append([f"m{number}", "d1", at, f"media/{number}.jpg", "true", f"{number}.jpg", "image/jpeg"])
    rows.append(["m7", "d1", times[0], "media/film.mp4", "true", "film.mp4", "video/mp4"])
    write_table(folder / "media.csv", [*MEDIA, *rows])
    write_table(
        folder / "observations.csv",
        [
            *OBSERVED,
            observed(1, "", "animal", "Cervus elaphus", event="e1", level="event"),
            observed(2, "m2", "animal", "Vulpes vulpes", count="2"),
            observed(3, "m2", "human", "Homo sapiens"),
            observed(4, "m3", "blank"),
            observed(5, "m4", "animal", "Vulpes vulpes", method="machine", probability="0.8"),
            observed(6, "m5", "unclassified"),
            observed(7, "m6", "vehicle"),
            observed(8, "m99", "animal", "Meles meles"),
        ],
    )
    header = ["deploymentID", "locationName", "latitude", "longitude", "deploymentStart", "deploymentEnd"]
    start, end = "2024-05-01T00:00:00Z", "2024-05-03T00:00:00Z"
    write_table(folder / "deployments.csv", [header, ["d1", "Ford", "51.5", "4.7", start, end]])
    taxa = [{"scientificName": "Vulpes vulpes", "vernacularNames": {"eng": "red fox"}}]
    resources = [{"name": name, "path": f"{name}.csv"} for name in ("deployments", "media", "observations")]
    document = {"profile": "https://x/camtrap-dp/1.0.2/camtrap-dp-profile.json", "resources": resources}
    (folder / "datapackage.json").write_text(json.dumps(document | {"taxonomic": taxa}))
    return folder


LABELS = {
    "media/2.jpg": {"Vulpes vulpes": "present", "human": "present"},
    "media/6.jpg": {"vehicle": "present"},
}
COMPLETE = dict.fromkeys(("Cervus elaphus", "Vulpes vulpes", "human", "vehicle", "Meles meles"), "absent")


def test_camtrap_dp_reader_imports_media_labels_blanks_events_scores_and_fields(tmp_path, package):
    plan = bring(tmp_path / "project", package)
    assert plan.format.name == "camtrap-dp"
    assert labels_of(tmp_path / "project") == LABELS | {"media/3.jpg": COMPLETE}
    assert plan.preview.scores == 1
    assert events_of(tmp_path / "project", "media/0.jpg") == [("e1", "Cervus elaphus")]
    assert events_of(tmp_path / "project", "media/1.jpg") == [("e1", "Cervus elaphus")]
    assert events_of(tmp_path / "project", "media/2.jpg") == []
    facts = facts_of(tmp_path / "project", "media/2.jpg")
    assert facts["count of Vulpes vulpes"] == "2"
    assert facts["sex of Vulpes vulpes"] == "female"
    assert (facts["locationName"], facts["latitude"], facts["deploymentID"]) == ("Ford", "51.5", "d1")
    assert facts_of(tmp_path / "project", "media/5.jpg")["observationType"] == "unclassified"
    origin = "SELECT DISTINCT annotator, decided_at FROM origin"
    assert Database(tmp_path / "project").tuples(origin) == [("Eva", 1717200000.0)]
    said = " ".join(plan.sentences)
    assert "1 observation left out: media.csv has no medium of that id (the first: 'm99')" in said
    assert "1 video or sound left out" in said


def test_camtrap_dp_package_with_media_folders_is_not_read_as_class_folders(tmp_path, package):
    for number, station in enumerate(("north", "south")):
        draw(package / station / "x.jpg", seed=50 + number)
    assert bring(tmp_path / "project", package).format.name == "camtrap-dp"


@pytest.mark.parametrize("name", ["datapackage.json", "media.csv", "observations.csv", "zip"])
def test_any_file_or_zip_of_a_camtrap_dp_package_is_read_as_the_package(tmp_path, package, name):
    source = package / name
    if name == "zip":
        source = tmp_path / "package.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for file in sorted(package.rglob("*.*")):
                archive.write(file, f"top/{file.relative_to(package).as_posix()}")
    plan = bring(tmp_path / "project", source)
    assert plan.format.name == "camtrap-dp"
    labels = {image.removeprefix("top/"): given for image, given in labels_of(tmp_path / "project").items()}
    assert labels == LABELS | {"media/3.jpg": COMPLETE}


def test_camtrap_dp_classes_use_vernacular_names_on_request(tmp_path, package):
    reading = ReadingOptions(label_columns=("vernacularNames.eng",))
    plan = bring(tmp_path / "project", package, reading=reading)
    assert labels_of(tmp_path / "project")["media/2.jpg"] == {"red fox": "present", "human": "present"}
    assert [one.others for one in plan.interpretations] == [("scientificName",)]
    with pytest.raises(AnnotatorError, match=r"It has: scientificName, vernacularNames\.eng"):
        bring(tmp_path / "other", package, reading=ReadingOptions(label_columns=("vernacularNames.deu",)))


def test_camtrap_dp_package_with_missing_tables_or_columns_is_refused_with_their_names(tmp_path, package):
    (package / "media.csv").unlink()
    with pytest.raises(AnnotatorError, match=r"names the file 'media.csv', which is not there"):
        bring(tmp_path / "project", package)
    write_table(package / "media.csv", [["media_id", "deployment_id"], ["m1", "d1"]])
    with pytest.raises(AnnotatorError, match="has no column mediaID and no filePath"):
        bring(tmp_path / "project", package)
    document = json.loads((package / "datapackage.json").read_text())
    document["resources"][1]["path"] = "../../etc/passwd"
    document["resources"][2]["path"] = "https://example.org/observations.csv"
    (package / "datapackage.json").write_text(json.dumps(document))
    with pytest.raises(AnnotatorError, match=r"(?s)\.\./\.\./etc/passwd.*example\.org"):
        bring(tmp_path / "project", package)
    (package / "datapackage.json").write_text("{")
    with pytest.raises(AnnotatorError, match="no JSON"):
        bring(tmp_path / "project", package, format="camtrap-dp")


def test_camtrap_dp_reader_refuses_duplicate_media_ids_and_text_that_is_not_utf_8(tmp_path, package):
    lines = (package / "media.csv").read_text().splitlines()
    (package / "media.csv").write_text("\n".join([*lines, lines[1]]))
    with pytest.raises(AnnotatorError, match="the mediaID 'm0' is there twice"):
        bring(tmp_path / "project", package)
    (package / "media.csv").write_bytes("\n".join(lines).encode() + b"\nm\xe9,d1,,a.jpg,,,\n")
    with pytest.raises(AnnotatorError, match="is not UTF-8 text"):
        bring(tmp_path / "project", package)


def test_camtrap_dp_export_reads_back_the_same_labels_events_and_fields(tmp_path, package):
    bring(tmp_path / "project", package)
    export_data_set(Database(tmp_path / "project"), tmp_path / "out", "camtrap-dp", Choices(images="copy"), lossy=True)
    (tmp_path / "out" / "provenance.csv").unlink()
    (tmp_path / "out" / "notes.csv").unlink()
    bring(tmp_path / "again", tmp_path / "out")
    assert labels_of(tmp_path / "again") == labels_of(tmp_path / "project")
    assert events_of(tmp_path / "again", "media/0.jpg") == [("e1", "Cervus elaphus")]
    facts = facts_of(tmp_path / "again", "media/2.jpg")
    assert facts["count of Vulpes vulpes"] == "2"
    assert (facts["deploymentID"], facts["latitude"], facts["timestamp"]) == ("d1", "51.5", "2024-05-02T04:00:00Z")
    query = "SELECT DISTINCT annotator, decided_at FROM origin"
    assert Database(tmp_path / "again").tuples(query) == [("Eva", 1717200000.0)]


def test_camtrap_dp_export_writes_observations_with_annotators_and_blanks(tmp_path, package):
    bring(tmp_path / "project", package)
    export_data_set(Database(tmp_path / "project"), tmp_path / "out", "camtrap-dp", lossy=True)
    names = {row["mediaID"]: row["fileName"] for row in table(tmp_path / "out" / "media.csv")}
    rows = table(tmp_path / "out" / "observations.csv")
    shown = {
        (
            names.get(row["mediaID"], row["eventID"]),
            row["observationLevel"],
            row["observationType"],
            row["scientificName"],
        )
        for row in rows
    }
    assert shown == {
        ("media/2.jpg", "media", "animal", "Vulpes vulpes"),
        ("media/2.jpg", "media", "human", ""),
        ("media/3.jpg", "media", "blank", ""),
        ("media/5.jpg", "media", "unclassified", ""),
        ("media/6.jpg", "media", "vehicle", ""),
        ("e1", "event", "animal", "Cervus elaphus"),
    }
    assert {row["classifiedBy"] for row in rows} == {"Eva", ""}
    assert {row["eventStart"] for row in rows if row["observationLevel"] == "event"} == {"2024-05-01T06:00:10Z"}


def test_camtrap_dp_export_reports_unknown_locations_and_times_and_leaves_them_empty(db, tmp_path, annotator):
    done = annotator("export", db.paths.project, "out", "--format", "camtrap-dp", "--lossy")
    assert "without latitude and longitude" in done.stdout
    assert "without the time at which it was taken" in done.stdout
    rows = table(tmp_path / "out" / "deployments.csv")
    assert {(row["latitude"], row["deploymentStart"]) for row in rows} == {("", "")}
    (tmp_path / "where.csv").write_text("deploymentID,latitude,longitude\ndeployment,91,4.5\ndeployment,1,x\n")
    words = ("export", db.paths.project, "out2", "--format", "camtrap-dp", "--lossy", "--deployments", "where.csv")
    said = annotator(*words, code=1).stderr
    assert "latitude '91' does not lie between -90 and 90" in said
    assert "longitude 'x'" in said
    assert "is there twice" in said
    header = [["deploymentID", "latitude", "longitude"]]
    write_table(tmp_path / "where.csv", [*header, *([row["deploymentID"], 51, 4.5] for row in rows)])
    assert "without latitude" not in annotator(*words).stdout
    assert (
        "no place for it" in annotator("export", db.paths.project, "a.csv", "--deployments", "where.csv", code=1).stderr
    )


def _schema(names, required, numbers=()):
    kinds = dict.fromkeys(numbers, "number")
    fields = [
        {"name": name, "type": kinds.get(name, "string"), "constraints": {"required": name in required}}
        for name in names
    ]
    return {"fields": fields, "missingValues": ["", "NA", "NaN", "nan"], "primaryKey": names[0]}


def test_exported_camtrap_dp_package_passes_frictionless_validation(tmp_path, package):
    """The rules of Camtrap DP 1.0.2 on columns, their order, and cells that must not be empty; keys that must match."""
    frictionless = pytest.importorskip("frictionless")
    bring(tmp_path / "project", package)
    export_data_set(Database(tmp_path / "project"), tmp_path / "out", "camtrap-dp", Choices(images="copy"), lossy=True)
    document = json.loads((tmp_path / "out" / "datapackage.json").read_text())
    needed = ("resources", "profile", "created", "contributors", "project", "spatial", "temporal", "taxonomic")
    assert set(needed) <= document.keys()
    assert document["temporal"] == {"start": "2024-05-01", "end": "2024-05-03"}
    assert document["spatial"] == {"type": "MultiPoint", "coordinates": [[4.7, 51.5]]}
    start = ("deploymentID", "deploymentStart", "deploymentEnd", "latitude", "longitude")
    schemas = {
        "deployments": _schema(DEPLOYMENT_COLUMNS, start, ("latitude", "longitude")),
        "media": _schema(
            MEDIA_COLUMNS, ("mediaID", "deploymentID", "timestamp", "filePath", "filePublic", "fileMediatype")
        ),
        "observations": _schema(
            OBSERVATION_COLUMNS,
            ("observationID", "deploymentID", "eventStart", "eventEnd", "observationLevel", "observationType"),
            ("classificationProbability",),
        ),
    }
    key = {"fields": ["deploymentID"], "reference": {"resource": "deployments", "fields": ["deploymentID"]}}
    for resource in document["resources"]:
        assert "/1.0.2/" in resource["schema"]
        resource["schema"] = schemas[resource["name"]]
        if resource["name"] != "deployments":
            resource["schema"]["foreignKeys"] = [key]
    del document["profile"]  # an address, which a test does not ask
    report = frictionless.Package.from_descriptor(document, basepath=str(tmp_path / "out")).validate()
    assert report.valid, report.flatten(["message"])


# ---- Timelapse


def timelapse(path, rows, template, columns):
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("CREATE TABLE TemplateTable (Id INTEGER, Type TEXT, DefaultValue TEXT, Label TEXT, DataLabel TEXT)")
        sql.executemany(
            "INSERT INTO TemplateTable VALUES (?, ?, ?, ?, ?)", [(n, *row) for n, row in enumerate(template)]
        )
        sql.execute(f"CREATE TABLE DataTable (Id INTEGER PRIMARY KEY, {', '.join(f'{name} TEXT' for name in columns)})")
        marks = ", ".join("?" * len(columns))
        sql.executemany(f"INSERT INTO DataTable ({', '.join(columns)}) VALUES ({marks})", rows)
        sql.commit()
    return path


TEMPLATE = [
    ("File", "", "File", "File"),
    ("RelativePath", "", "RelativePath", "RelativePath"),
    ("DateTime", "", "DateTime", "DateTime"),
    ("DeleteFlag", "false", "Delete?", "DeleteFlag"),
    ("FixedChoice", "", "Species", "Species"),
    ("FixedChoice", "", "Weather", "Weather"),
    ("Counter", "0", "Count", "Count"),
    ("Flag", "false", "Tagged animal", "Tagged"),
]
COLUMNS = ("File", "RelativePath", "DateTime", "DeleteFlag", "Species", "Weather", "Count", "Tagged")


@pytest.fixture
def traps(tmp_path):
    for station in ("S1", "S2"):
        for number in range(2):
            draw(tmp_path / "traps" / station / f"RCNX000{number}.JPG", seed=number + 10 * (station == "S2"))
    rows = [
        ("RCNX0000.JPG", "S1", "2024-05-01 06:12:00", "false", "roe deer", "sunny", "2", "true"),
        ("RCNX0001.JPG", "S1", "2024-05-01 06:13:00", "true", "Empty", "", "0", "false"),
        ("RCNX0000.JPG", "S2", "2024-05-01 06:14:00", "false", "fox", "", "1", "false"),
        ("RCNX0001.JPG", "S2", "2024-05-01 06:15:00", "false", "", "", "0", "false"),
        ("film.mp4", "S2", "2024-05-01 06:15:00", "false", "fox", "", "0", "false"),
    ]
    return timelapse(tmp_path / "traps" / "TimelapseData.ddb", rows, TEMPLATE, COLUMNS)


def test_timelapse_reader_imports_choices_and_flags_as_labels_and_other_values_as_fields(tmp_path, traps):
    before = traps.read_bytes()
    plan = bring(tmp_path / "project", traps)
    labels = {"S1/RCNX0000.JPG": {"roe deer": "present", "Tagged animal": "present"}}
    empty = dict.fromkeys(("roe deer", "fox", "Tagged animal"), "absent")
    assert labels_of(tmp_path / "project") == labels | {"S1/RCNX0001.JPG": empty, "S2/RCNX0000.JPG": {"fox": "present"}}
    facts = facts_of(tmp_path / "project", "S1/RCNX0000.JPG")
    assert facts == {"DateTime": "2024-05-01 06:12:00", "Weather": "sunny", "Count": "2"}
    assert facts_of(tmp_path / "project", "S1/RCNX0001.JPG")["DeleteFlag"] == "true"
    assert "1 row left out" in " ".join(plan.sentences)
    assert traps.read_bytes() == before
    assert [file.name for file in traps.parent.iterdir() if file.is_file()] == [traps.name]


def test_import_of_a_timelapse_image_folder_reads_the_labels_of_its_database(tmp_path, traps):
    plan = bring(tmp_path / "project", traps.parent)
    assert plan.format.name == "timelapse"
    assert labels_of(tmp_path / "project")["S2/RCNX0000.JPG"] == {"fox": "present"}


def test_timelapse_import_asks_which_choice_column_names_the_class(tmp_path):
    draw(tmp_path / "a.jpg")
    template = [("FixedChoice", "", "One", "One"), ("FixedChoice", "", "Two", "Two")]
    path = timelapse(
        tmp_path / "a.ddb", [("a.jpg", "", "fox", "rain")], template, ("File", "RelativePath", "One", "Two")
    )
    with import_plan.prepare_import(tmp_path / "project", path, import_plan.ImportOptions(), by="Ann") as plan:
        (asked,) = [one for one in plan.interpretations if not one.is_sure]
        assert (asked.field, asked.others) == ("label_columns", ["One", "Two"])
    bring(tmp_path / "project", path, reading=ReadingOptions(label_columns=("One",)))
    assert labels_of(tmp_path / "project") == {"a.jpg": {"fox": "present"}}
    assert facts_of(tmp_path / "project", "a.jpg") == {"Two": "rain"}
    with pytest.raises(AnnotatorError, match="has no column 'Three'"):
        bring(tmp_path / "project", path, reading=ReadingOptions(label_columns=("Three",)))


def test_file_that_is_not_a_timelapse_database_is_refused_with_the_reason(tmp_path, traps):
    path = tmp_path / "x.ddb"
    path.write_text("File,Species\n")
    with pytest.raises(AnnotatorError, match="it is no SQLite file"):
        bring(tmp_path / "project", path)
    path.write_bytes(traps.read_bytes()[:5000])
    with pytest.raises(AnnotatorError, match=r"a database of Timelapse"):
        bring(tmp_path / "project", path)
    path.unlink()
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("CREATE TABLE TemplateTable (DataLabel, Type)")
        sql.execute(
            """CREATE VIEW DataTable AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
            SELECT i AS File FROM n"""
        )
    with pytest.raises(AnnotatorError, match="it has no table DataTable"):
        bring(tmp_path / "project", path)


# ---- Wildlife Insights


def test_wildlife_insights_reader_separates_annotators_computer_vision_and_blanks(tmp_path):
    for folder in ("S1", "S2"):
        for number in range(3):
            draw(tmp_path / "photos" / folder / f"IMG_{number}.JPG", seed=number + 10 * (folder == "S2"))
    columns = [
        *("project_id", "deployment_id", "image_id", "filename", "location", "is_blank", "identified_by", "genus"),
        *("species", "common_name", "uncertainty", "timestamp", "number_of_objects", "cv_confidence"),
    ]

    def row(image, folder, blank, by, genus="", species="", common="", uncertainty="", count="", confidence=""):
        address = f"gs://bucket/{folder}/{image}.JPG"
        start = ["p", folder, f"{folder}-{image}", f"{image}.JPG", address, blank, by, genus, species, common]
        return [*start, uncertainty, "2024-05-01 06:00:00", count, confidence]

    rows = [
        row("IMG_0", "S1", "0", "Eva", "Vulpes", "vulpes", "Red Fox", count="2"),
        row("IMG_0", "S1", "0", "Eva", "Cervus", "elaphus", "Red Deer", uncertainty="1"),
        row("IMG_1", "S1", "1", "Eva", common="Blank"),
        row("IMG_2", "S1", "0", "Computer vision", "Vulpes", "vulpes", "Red Fox", confidence="0.6"),
        row("IMG_0", "S2", "0", "Eva", common="Human"),
        row("IMG_1", "S2", "0", "Eva", common="No CV Result"),
    ]
    write_table(tmp_path / "images.csv", [columns, *rows])
    plan = bring(tmp_path / "project", tmp_path / "images.csv", images=tmp_path / "photos")
    assert plan.format.name == "wildlife-insights"
    complete = dict.fromkeys(("Vulpes vulpes", "Cervus elaphus", "human"), "absent")
    assert labels_of(tmp_path / "project") == {
        "S1/IMG_0.JPG": {"Vulpes vulpes": "present", "Cervus elaphus": "unsure"},
        "S1/IMG_1.JPG": complete,
        "S2/IMG_0.JPG": {"human": "present"},
    }
    assert plan.preview.scores == 1
    assert facts_of(tmp_path / "project", "S1/IMG_0.JPG")["count of Vulpes vulpes"] == "2"
    assert ("folder_column", "deployment_id") in [(one.field, one.value) for one in plan.interpretations]
    reading = ReadingOptions(label_columns=("common_name",))
    bring(tmp_path / "common", tmp_path / "images.csv", images=tmp_path / "photos", reading=reading)
    assert labels_of(tmp_path / "common")["S1/IMG_0.JPG"] == {"Red Fox": "present", "Red Deer": "unsure"}

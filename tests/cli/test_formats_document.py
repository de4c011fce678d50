"""docs/formats.md and the two stories: every command is run, and each row says what its format says of itself."""

import io
import json
import re
import shlex
import shutil
import sqlite3
import tarfile
import threading
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import CLASSES, draw
from harness.opendocument import format_row, format_sheet, write_workbook
from harness.short_forms import mark_slow_after
from harness.tool_files import TOOL_FILES
from typer.main import get_command

from annotator import open
from annotator.cli import app
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.formats import FORMATS
from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database

DOCS = Path(__file__).resolve().parents[2] / "docs"
LINE = re.compile(r"^\| `([\w-]+)` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
TEXT = (DOCS / "formats.md").read_text(encoding="utf-8")
ROWS = {row[0]: row[1:] for row in LINE.findall(re.sub(r"\| (?=\|)", "| - ", TEXT))}

ARCHIVE_TERMS = ((1, "scientificName"), (2, "associatedMedia"))


def test_formats_page_table_lists_every_format_with_its_properties():
    assert list(ROWS) == list(FORMATS)
    for name, (_, cannot, out, back, who) in ROWS.items():
        format_ = FORMATS[name]
        assert (bool(format_.write), bool(format_.read)) == (out != "-", back != "-" and name != "torch"), name
        if format_.write:
            lost = [word for word in ("unknown", "absent", "unsure") if getattr(format_.lost, word)]
            assert cannot == (", ".join(lost) or "-"), name
            assert who == ("beside it" if format_.lost.provenance else "in it"), name


@pytest.fixture
def birds(tmp_path, photos, class_file):
    """The projects of the page, and a source of each format that is only read."""
    for name in ("birds", "copy"):
        set_up_project(tmp_path / name, images_folder=photos, class_file=class_file)
    with open(tmp_path / "birds") as project:
        project.decide([f"{number:02}.jpg" for number in range(6)], "fox", "present", annotator="Ann")
        project.decide([f"{number:02}.jpg" for number in range(3, 9)], "heron", "absent", annotator="Ann")
        project.decide(["00.jpg", "01.jpg", "09.jpg"], "deer", "present", annotator="Bob")
    records = pd.DataFrame({"file_name": ["00.jpg", "09.jpg"], "tags": [["fox", "deer"], ["deer"]]})
    records.to_json(tmp_path / "records.json", orient="records")
    pd.DataFrame({"file": ["00.jpg"], "fox": ["yes"]}).to_excel(tmp_path / "labels.xlsx", index=False)
    (tmp_path / "occurrences").mkdir()
    (tmp_path / "occurrences/occurrence.csv").write_text("1,fox,00.jpg | 01.jpg\n")
    fields = [f'<field index="{number}" term="http://rs.tdwg.org/dwc/terms/{term}"/>' for number, term in ARCHIVE_TERMS]
    core = '<core rowType="http://rs.tdwg.org/dwc/terms/Occurrence"><files><location>occurrence.csv</location></files>'
    archive = f'<archive xmlns="http://rs.tdwg.org/dwc/text/">{core}<id index="0"/>{"".join(fields)}</core></archive>'
    (tmp_path / "occurrences/meta.xml").write_text(archive)
    (tmp_path / "nus-wide").mkdir()
    (tmp_path / "nus-wide/Imagelist.txt").write_text("birds\\\\00.jpg\nbirds\\\\01.jpg\n")
    (tmp_path / "nus-wide/Labels_fox.txt").write_text("1\n1\n")
    rows = [format_row("file", "fox"), format_row("00.jpg", "yes")]
    write_workbook(tmp_path / "labels.ods", format_sheet("now", rows))
    (tmp_path / "tags.tsv").write_text("image\tfox\theron\n00.jpg\t1\t\n03.jpg\t1\t0\n")
    for number, class_ in enumerate(("fox", "fox", "deer")):
        place = tmp_path / "sorted" / class_ / f"{number}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(photos / f"{(0, 1, 9)[number]:02}.jpg", place)
    for part in ("images", "labels"):
        (tmp_path / "yolo-set" / part / "train").mkdir(parents=True)
    (tmp_path / "yolo-set/data.yaml").write_text("train: images/train\nnames: [deer, fox]\n")
    shutil.copy(photos / "00.jpg", tmp_path / "yolo-set/images/train/a.jpg")
    (tmp_path / "yolo-set/labels/train/a.txt").write_text("0 0.5 0.5 0.1 0.1\n1 0.2 0.2 0.1 0.1\n")
    for name in ("labelme", "fiftyone-labels/data"):
        (tmp_path / name).mkdir(parents=True)
        shutil.copy(photos / "00.jpg", tmp_path / name / "00.jpg")
    (tmp_path / "labelme/00.json").write_text('{"flags": {"fox": true}, "shapes": [], "imagePath": "00.jpg"}')
    (tmp_path / "fiftyone-labels/labels.json").write_text('{"classes": ["fox"], "labels": {"00": 0}}')
    (tmp_path / "list_attr.txt").write_text("2\nfox deer\n00.jpg 1 0\n09.jpg 0 1\n")
    (tmp_path / "createml.json").write_text('[{"image": "00.jpg", "annotations": [{"label": "fox"}]}]')
    regions = [{"shape_attributes": {}, "region_attributes": {"type": "fox"}}]
    via = {"00.jpg9": {"filename": "00.jpg", "size": 9, "regions": regions, "file_attributes": {}}}
    (tmp_path / "via.json").write_text(json.dumps(via))
    for part in ("img", "ann"):
        (tmp_path / "supervisely/first" / part).mkdir(parents=True)
    shutil.copy(photos / "00.jpg", tmp_path / "supervisely/first/img/00.jpg")
    (tmp_path / "supervisely/meta.json").write_text('{"classes": [{"title": "fox"}], "tags": []}')
    (tmp_path / "supervisely/first/ann/00.jpg.json").write_text('{"tags": [], "objects": [{"classTitle": "fox"}]}')
    assets = {"1": {"asset": {"name": "00.jpg"}, "regions": [{"tags": ["fox"]}]}}
    vott = {"securityToken": "", "tags": [{"name": "fox"}], "assets": assets}
    (tmp_path / "vott.json").write_text(json.dumps(vott))
    for file, text in TOOL_FILES.values():
        (tmp_path / file).write_text(text)
    images = [{"id": 1, "file_name": "00.jpg"}, {"id": 2, "file_name": "01.jpg"}]
    labels = {"images": images, "categories": [{"id": 1, "name": "fox"}], "annotations": []}
    (tmp_path / "annotations.json").write_text(json.dumps(labels))
    scores = [{"image_id": 1, "category_id": 1, "score": 0.9}, {"image_id": 2, "category_id": 1, "score": 0.2}]
    (tmp_path / "results.json").write_text(json.dumps(scores))
    found = [{"file": "00.jpg", "detections": [{"category": "1", "conf": 0.9, "bbox": [0, 0, 0.5, 0.5]}]}]
    (tmp_path / "md.json").write_text(json.dumps({"images": found, "detection_categories": {"1": "fox"}}))
    classified = {"classes": ["id;mammalia;carnivora;canidae;vulpes;vulpes;fox", "id;;;;;;blank"], "scores": [0.9, 0.1]}
    species = [{"filepath": "00.jpg", "classifications": classified}]
    (tmp_path / "sn.json").write_text(json.dumps({"predictions": species}))
    row = ("IMG", "d", "i", "00.jpg", "0", "Ann", "fox")
    header = "project_id,deployment_id,image_id,filename,is_blank,identified_by,common_name"
    (tmp_path / "wildlife.csv").write_text(f"{header}\n{','.join(row)}\n")
    with closing(sqlite3.connect(tmp_path / "TimelapseData.ddb")) as sql:
        sql.execute("CREATE TABLE TemplateTable (Type, DefaultValue, Label, DataLabel)")
        sql.execute("INSERT INTO TemplateTable VALUES ('FixedChoice', '', 'Species', 'Species')")
        sql.execute("CREATE TABLE DataTable (File, RelativePath, Species)")
        sql.execute("INSERT INTO DataTable VALUES ('00.jpg', '', 'fox')")
        sql.commit()
    export_data_set(Database(tmp_path / "birds"), tmp_path / "described.csv", "csv", Choices(croissant=True))
    [facts] = re.findall(r"^```json\n(.*?)^```", SECTIONS["Croissant"], re.DOTALL | re.MULTILINE)
    (tmp_path / "facts.json").write_text(facts)
    return tmp_path


def answers(place: Path) -> dict[tuple[str, str], str]:
    """Content and class -> state, of all cells that have one."""
    with open(place) as project:
        labels, images = project.labels(), project.images()
    sha256 = dict(zip(images["id"], images["sha256"], strict=True))
    cells = zip(labels["image_id"].map(sha256), labels["class"], labels["state"], strict=True)
    return {(image, class_): state for image, class_, state in cells}


def commands(cell: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in re.findall(r"`(annotator [^`]+)`", cell)]


@pytest.mark.parametrize("name", mark_slow_after(5, ROWS))
def test_formats_page_commands_run_and_round_trip_the_labels_of_each_format(birds, annotator, name):
    _, cannot, out, back, _ = ROWS[name]
    for words in commands(out):
        annotator(*words)
    before = answers(birds / "birds")
    for words in commands(back):
        annotator(*words)
    after = answers(birds / "copy")
    assert after.items() <= before.items()
    if commands(out) and commands(back):  # what it cannot hold may come back with provenance.csv
        assert {cell: state for cell, state in before.items() if state not in cannot}.items() <= after.items()
    elif commands(back) and name != "images" and not FORMATS[name].predicted_by:  # which bring no answers
        assert after


SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))
OPTIONS = [
    "import",
    "imports list",
    "imports undo",
    "export",
    "tags",
    "diff",
    "predictions",
    "tokens list",
    "tokens make",
]
OPTIONS += ["tokens revoke", "formats"]


def test_formats_page_documents_every_import_and_export_option():
    for words in OPTIONS:
        command = get_command(app)
        for word in words.split():
            command = command.commands[word]
        options = [name for option in command.params for name in option.opts if name.startswith("--")]
        assert not [name for name in options if f"{name}`" not in TEXT and f"{name} " not in TEXT], words


@pytest.fixture
def elsewhere(birds, photos):
    """A source of each kind of the page, with an image that no other one has; serves web/ at the address returned."""
    for number, name in enumerate(("zipped", "listed", "web/birds", "hub-folder")):
        draw(birds / name / f"{number}.jpg", ("fox",), seed=100 + number)
        shutil.copy(photos / "00.jpg", birds / name / "again.jpg")
    (birds / "paths.txt").write_text("listed/1.jpg\nlisted/again.jpg\n")
    (birds / "hub-folder/metadata.jsonl").write_text('{"file_name": "3.jpg", "labels": ["fox"]}\n')
    shutil.make_archive(str(birds / "photos"), "zip", birds / "zipped")
    content = [draw(birds / f"{number}.jpg", ("deer",), seed=200 + number).read_bytes() for number in range(2)]
    pd.DataFrame({"image": [{"bytes": content[0], "path": "4.jpg"}]}).to_parquet(birds / "photos.parquet")
    (birds / "tars").mkdir()
    with tarfile.open(birds / "tars/0.tar", "w") as shard:
        for name, data in (("5.jpg", content[1]), ("5.cls", b"deer")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            shard.addfile(member, io.BytesIO(data))
    handler = partial(SimpleHTTPRequestHandler, directory=str(birds / "web"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
def test_formats_page_image_commands_add_each_image_once(birds, elsewhere, annotator):
    rows = commands(SECTIONS["Where images come from"].replace("https://example.org/", elsewhere))
    rows = [words for words in rows if words[1] == "copy"]
    for number, words in enumerate(rows, start=1):
        for again in range(2):
            said = annotator(*words).stdout
            with open(birds / "copy") as project:
                assert len(project.images()) == 24 + number, words
            assert ("nothing new" in said) == bool(again), words
    assert number == 6
    assert sorted(class_ for _, class_ in answers(birds / "copy")) == ["deer", "fox"]


@pytest.mark.slow
def test_other_commands_of_the_formats_page_run(birds, annotator):
    (birds / "map.csv").write_text("heron,deer\nfox,fox\n")
    (birds / "names.txt").write_text("00.jpg\n01.jpg\n")
    (birds / "some.txt").write_text("fox\nwolf\n")
    np.save(birds / "scores.npy", np.array([[0.5, 1.0], [2.0, 0.0]]))
    rows = commands(SECTIONS["Bringing data in"])
    rows = [words for words in rows if not {"PROJECT", "SOURCE", "PROJECT SOURCE"} & set(words)]
    assert len(rows) == 7
    for words in rows:
        annotator(*words)
    blocks = re.findall(r"^```sh\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 5
    for line in "".join(blocks).splitlines():
        annotator(*shlex.split(line)[1:])
    chosen = pd.read_csv(birds / "chosen.csv")
    assert list(chosen.columns[-2:]) == ["fox", "deer"] and len(chosen) == 6
    assert pd.read_csv(birds / "files.csv").columns.tolist() == ["file", "fox", "grey_heron"]


def tell(page: str, annotator) -> None:
    """Run every line of every sh block of a page."""
    for block in re.findall(r"^```sh\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            annotator(*shlex.split(line)[1:])


@pytest.mark.slow
@pytest.mark.training
def test_single_label_documentation_runs_and_marks_no_unanswered_label_absent(tmp_path, annotator):
    for number in range(24):
        class_ = CLASSES[number % 3]
        draw(tmp_path / "animals" / class_ / f"{number:02}.jpg", (class_, CLASSES[number % 2]), seed=number)
    tell("single-label.md", annotator)
    exported = pd.read_csv(tmp_path / "labels.csv").set_index("image")
    truth = pd.DataFrame(float("nan"), index=exported.index, columns=sorted(CLASSES))
    for name in truth.index:
        truth.loc[name, name.partition("/")[0]] = 1.0
    truth.loc["fox/00.jpg", ["heron", "deer"]] = 1.0, 0.0
    assert exported[truth.columns].astype(float).equals(truth) and len(exported) == 24
    assert len(list((tmp_path / "training-set/images").iterdir())) == 24
    with open(tmp_path / "birds") as project:  # after the import was taken back
        assert project.labels()[["class", "state"]].values.tolist() == [["deer", "absent"], ["heron", "present"]]


@pytest.mark.slow
@pytest.mark.training
def test_label_studio_documentation_commands_run_and_round_trip_the_labels(tmp_path, photos, annotator):
    tasks = []
    for number in range(23):
        shows = [name for bit, name in enumerate(CLASSES) if (number + 1) >> bit & 1][:1]
        result = {"type": "choices", "from_name": "choice", "to_name": "image", "value": {"choices": shows}}
        guess = {"type": "choices", "from_name": "choice", "to_name": "image", "value": {"choices": ["heron"]}}
        tasks.append(
            {
                "id": number,
                "data": {"image": f"/data/upload/1/1a2b3c4d-{number:02}.jpg"},
                "annotations": [{"result": [result], "completed_by": 1}] if shows else [],
                "predictions": [{"result": [guess], "score": number / 30}],
            }
        )
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    tell("label-studio.md", annotator)
    one, two = (pd.read_csv(tmp_path / name).set_index("image") for name in ("one.csv", "two.csv"))
    assert one.equals(two[one.columns].loc[one.index])
    assert (one == 1).sum().sum() == sum(bool(task["annotations"]) for task in tasks) + 1
    assert (one == 0).sum().sum() == 1 and one.loc["03.jpg", "fox"] == 0

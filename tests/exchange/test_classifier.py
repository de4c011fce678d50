"""A classifier is taken home: one file with the model, thresholds and a card, which runs without project and torch."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from harness.page_scripts import fine, shown, words
from onnx import TensorProto, helper
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.exchange import project_setup
from annotator.exchange.classifier.description import METADATA_KEY, Description, KnownClass, parse_description
from annotator.exchange.classifier.onnx_classifier import INPUT_NAME, OUTPUT_NAME, load_classifier
from annotator.exchange.exports.thresholds import Limits
from annotator.records import Decision
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.database.database import Database
from annotator.store.disk import processes
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.ui.access import served_project
from annotator.ui.pages.export.classifier_builder import ClassifierBuilder, get_classifier_builder
from annotator.worker.process import run_worker
from annotator.worker.taking_home.classifier_writer import write_classifier
from annotator.worker.taking_home.loading import load_module

PAGE = Path(__file__).resolve().parents[2] / "docs" / "classifier.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def colors(folder: Path, count: int = 24) -> Path:
    """Pictures that are red, blue or both: 0.png, 1.png, ..."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = rng.integers(0, 60, (64, 80, 3), dtype=np.uint8)
        if number % 3 != 1:
            pixels[:, :40, 0] = 230
        if number % 3 != 0:
            pixels[:, 40:, 2] = 230
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained project, birds, its images, photos, and its classifier in both forms."""
    folder = tmp_path_factory.mktemp("home")
    colors(folder / "photos")
    project = folder / "birds"
    project_setup.set_up_project(project, images_folder=folder / "photos", class_text="red\nblue\n=never")
    db = Database(project)
    names = images.load_ids_by_name(db)
    for number in range(21):
        image, shown = names[f"{number}.png"], (number % 3 != 1, number % 3 != 0)
        for class_id, present in enumerate(shown, 1):
            decisions.save(db, [Decision(uuid=f"d{number}-{class_id}", action="label", image_id=image,
                class_id=class_id, state=1 if present else -1, source="click", annotator="ann")])  # fmt: skip
    run_worker(project, once=True)
    for name in ("birds.onnx", "birds.safetensors"):
        write_classifier(project, folder / name, Limits(0.05))
    return folder


@pytest.mark.slow
def test_exported_onnx_classifier_matches_the_torch_and_project_probabilities(birds):
    classifier, module = load_classifier(birds / "birds.onnx"), load_module(birds / "birds.safetensors")
    paths = [birds / "photos" / f"{number}.png" for number in range(24)]
    given = classifier(paths)
    pixels = np.stack([classifier.pixels(path) for path in paths])
    with torch.inference_mode():
        np.testing.assert_allclose(given, module(torch.from_numpy(pixels)).numpy(), atol=1e-3)
    db = Database(birds / "birds")
    predictions = read_predictions(db)
    ids = images.load_ids_by_name(db)
    rows = np.array([ids[path.name] for path in paths[21:]])  # which nobody has answered
    shown = predictions.align(predictions.probabilities, rows, predictions.class_ids[:2]).astype(float)
    np.testing.assert_allclose(given[21:], shown, atol=0.03)
    assert given[:, 0].max() > 0.7 > 0.3 > given[:, 0].min()
    assert classifier.classes == ["red", "blue"]  # nobody has labeled the third


@pytest.mark.slow
def test_classifier_accepts_paths_file_objects_pil_images_and_arrays(birds):
    classifier, path = load_classifier(birds / "birds.onnx"), birds / "photos" / "4.png"
    picture = Image.open(path)
    several = [path, str(path), io.BytesIO(path.read_bytes()), picture, np.asarray(picture)]
    given = classifier(several)
    assert given.shape == (5, 2) and np.ptp(given, axis=0).max() < 1e-6
    assert classifier([]).shape == (0, 2)
    with pytest.raises(ValueError, match="must be"):
        classifier([np.zeros((3, 8, 8), np.float32)])


@pytest.mark.slow
def test_classify_command_writes_whole_files_with_names_that_are_not_utf_8(birds, tmp_path, annotator):
    folder = tmp_path / "new"
    folder.mkdir()
    for name in (b"a.png", b"b\xe9.png", b"c\xff.jpg"):
        shutil.copy(birds / "photos" / "1.png", folder / os.fsdecode(name))
    (folder / os.fsdecode(b"c\xff.jpg")).write_bytes(b"no picture")
    names = ["a.png", "b\\xe9.png", "c\\xff.jpg"]
    for kind in ("csv", "json"):
        annotator("classify", birds / "birds.onnx", folder, "--format", kind, "--to", f"found.{kind}")
    rows = list(csv.DictReader((tmp_path / "found.csv").open(encoding="utf-8")))
    assert [row["image"] for row in rows] == names and rows[2]["problem"]
    lines = (tmp_path / "found.json").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["image"] for line in lines] == names
    annotator("classify", birds / "birds.onnx", folder / "a.png", "--to", "none/found.csv", code=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.csv", "found.json", "new"]


@pytest.mark.slow
def test_classifier_export_removes_what_a_killed_one_has_left(birds, tmp_path):
    target = tmp_path / "birds.safetensors"
    write_classifier(birds / "birds", target, Limits(0.05))
    machine, number, started = processes.get_process_name().split("-")
    dead = f"{machine}-{number}-{int(started, 16) - 1:x}"  # an ended process whose number this one has now
    left = [tmp_path / f".{name}.{dead}-0a0b0c.part" for name in ("birds.safetensors", "birds.json")]
    for path in left:
        path.write_text("half")
    write_classifier(birds / "birds", target, Limits(0.1), overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "birds.json", "birds.safetensors", "birds.safetensors.md"
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.process
def test_classify_command_runs_without_torch_and_reports_unreadable_images(birds, tmp_path, annotator):
    folder = tmp_path / "new"
    shutil.copytree(birds / "photos", folder / "more")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8 no picture")
    (folder / "notes.txt").write_text("no image")
    code = (
        "import sys; sys.argv[0] = 'annotator'; from annotator.__main__ import main\n"
        "try:\n    main()\nfinally:\n    assert 'torch' not in sys.modules and 'streamlit' not in sys.modules"
    )
    words = ["classify", birds / "birds.onnx", folder, "--to", "found.csv"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *map(str, words)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "1 of 25 images could not be read" in done.stderr
    rows = list(csv.DictReader((tmp_path / "found.csv").open(encoding="utf-8")))
    assert [row["image"] for row in rows][:2] == ["broken.jpg", "more/0.png"]
    assert rows[0]["problem"] and rows[0]["red"] == ""
    classifier = load_classifier(birds / "birds.onnx")
    probabilities = classifier([folder / row["image"] for row in rows[1:]])
    np.testing.assert_allclose([[float(row["red"]), float(row["blue"])] for row in rows[1:]], probabilities, atol=6e-5)
    for row, chances in zip(rows[1:], np.round(probabilities, 4), strict=True):
        named = [
            one.name for one, value in zip(classifier.description.classes, chances, strict=True)
            if one.present_from is not None and value >= one.present_from
        ]  # fmt: skip
        assert row["present"] == ";".join(named)
    assert "is there already" in annotator(*words, code=1).stderr
    line = json.loads(annotator("classify", birds / "birds.onnx", folder / "more/2.png", "--format", "json").stdout)
    assert line["image"] == "2.png" and set(line["probabilities"]) == {"red", "blue"}


def test_classifier_card_states_the_training_data_and_missing_measurements(birds):
    text = (birds / "birds.onnx.md").read_text(encoding="utf-8")
    assert "method auto" in text and "24 images" in text and "Licence of its weights: apache-2.0" in text
    assert "Left out, because nobody has labeled them: =never" in text
    assert "not measured. 0 of the 30 answers of audits that it takes" in text
    described = parse_description((birds / "birds.json").read_text(encoding="utf-8"), "birds.json")
    assert [one.name for one in described.classes] == ["red", "blue"] and described.expected_error == 0.05


def test_classifier_documentation_examples_run_and_agree(birds, monkeypatch):
    monkeypatch.chdir(birds)
    found: dict = {}
    for block in BLOCKS:
        exec(compile(block, "docs/classifier.md", "exec"), found)
    np.testing.assert_allclose(found["plain"], found["probabilities"][:1], atol=1e-3)
    np.testing.assert_allclose(found["same"].numpy(), found["plain"], atol=1e-3)
    assert found["names"] == ["red", "blue"]


def test_classifier_command_reports_all_errors_and_writes_nothing(birds, tmp_path, annotator):
    assert "must end in .onnx or .safetensors" in annotator("classifier", birds / "birds", "birds.pt", code=1).stderr
    said = annotator("classifier", birds / "birds", birds / "birds.onnx", "--expected-error", "0.9", code=1).stderr
    assert "0.9 is not possible" in said and "birds.onnx is there already" in said and "birds.onnx.md is there" in said
    project = tmp_path / "new"
    project_setup.set_up_project(project, images_folder=birds / "photos", class_text="red")
    assert "no run yet" in annotator("classifier", project, "new.onnx", code=1).stderr
    assert not list(tmp_path.glob("new.*"))


def made_up(path: Path, described: str | None, inputs=(3, 8, 8), classes=2, output=OUTPUT_NAME) -> Path:
    """An ONNX file that gives 0.5 for every class."""
    given = helper.make_tensor_value_info(INPUT_NAME, TensorProto.UINT8, ["n", *inputs])
    wanted = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["n", classes])
    nodes = [
        helper.make_node("Cast", [INPUT_NAME], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["floats", "axes"], ["sum"], keepdims=1),
        helper.make_node("Squeeze", ["sum", "last"], ["row"]),
        helper.make_node("Mul", ["row", "zeros"], ["zero"]),
        helper.make_node("Sigmoid", ["zero"], [output]),
    ]
    constants = [
        helper.make_tensor("axes", TensorProto.INT64, [3], [1, 2, 3]),
        helper.make_tensor("last", TensorProto.INT64, [2], [2, 3]),
        helper.make_tensor("zeros", TensorProto.FLOAT, [classes], [0.0] * classes),
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "made up", [given], [wanted], constants), opset_imports=[helper.make_opsetid("", 18)]
    )
    model.ir_version = 10
    if described is not None:
        model.metadata_props.append(onnx.StringStringEntryProto(key=METADATA_KEY, value=described))
    path.write_bytes(model.SerializeToString())
    return path


GOOD = Description((KnownClass("fox"), KnownClass("heron")), 8, "bilinear", "somebody's")


def test_foreign_or_tampered_classifier_file_is_refused(tmp_path):
    classifier = load_classifier(made_up(tmp_path / "good.onnx", GOOD.as_text()))
    np.testing.assert_allclose(classifier([np.zeros((8, 8, 3), np.uint8)] * 9), np.full((9, 2), 0.5))
    for name, path, said in (
        ("nothing", tmp_path / "none.onnx", "No such file"),
        ("a folder", tmp_path, "not a file"),
        ("no ONNX", _written(tmp_path / "text.onnx", b"MZ not a model"), "no ONNX file"),
        ("of another program", made_up(tmp_path / "a.onnx", None), "of another program"),
        ("no JSON", made_up(tmp_path / "b.onnx", "{"), "no classifier of this program"),
        ("deep JSON", made_up(tmp_path / "c.onnx", "[" * 100_000), "no classifier of this program"),
        ("of a later version", made_up(tmp_path / "d.onnx", '{"version": 9}'), "Install a newer"),
        ("other images", made_up(tmp_path / "e.onnx", GOOD.as_text(), inputs=(3, 9, 9)), "was changed"),
        ("other classes", made_up(tmp_path / "f.onnx", GOOD.as_text(), classes=3), "was changed"),
    ):
        with pytest.raises(AnnotatorError, match=said):
            load_classifier(path)
            pytest.fail(name)
    faulty = json.loads(GOOD.as_text()) | {"size": 10**9, "interpolation": "magic", "classes": [{"name": ""}]}
    with pytest.raises(AnnotatorError) as error:
        parse_description(json.dumps(faulty), "x.onnx")
    assert all(word in str(error.value) for word in ("1000000000", "magic", "1 of its classes"))


def test_classifier_with_external_weights_is_refused(tmp_path):
    made_up(tmp_path / "good.onnx", GOOD.as_text())
    model = onnx.load(tmp_path / "good.onnx")
    (tmp_path / "secret").write_bytes(np.zeros(2, np.float32).tobytes())
    [zeros] = [one for one in model.graph.initializer if one.name == "zeros"]
    zeros.ClearField("float_data")
    zeros.data_location = TensorProto.EXTERNAL
    zeros.external_data.add(key="location", value="secret")
    (tmp_path / "outside.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(AnnotatorError, match="no ONNX file"):
        load_classifier(tmp_path / "outside.onnx")


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.slow
@pytest.mark.process
def test_export_page_builds_a_classifier_and_offers_it_for_download(birds):
    db = Database(birds / "birds")
    test = shown(db, "export")
    fine(test.button(key="classifier_start").click().run())
    work_of_page = get_classifier_builder(served_project.db())
    assert work_of_page.is_at_work
    with pytest.raises(AnnotatorError, match="is being made"):
        work_of_page.start("other", 0.01)
    work_of_page.wait()
    assert work_of_page.made is not None and work_of_page.made.offered is not None, work_of_page.made
    assert "not measured" in words(fine(test.run()))
    assert any("Download classifier.zip" in one.proto.body for one in test.get("html"))
    with zipfile.ZipFile(work_of_page.made.offered.path) as archive:
        assert sorted(archive.namelist()) == ["classifier.onnx", "classifier.onnx.md"]
        content = archive.read("classifier.onnx")
    (birds / "downloaded.onnx").write_bytes(content)
    assert load_classifier(birds / "downloaded.onnx").classes == ["red", "blue"]


@pytest.mark.slow
@pytest.mark.process
def test_canceled_classifier_build_leaves_no_file_and_invalid_input_is_refused(birds):
    db = Database(birds / "birds")
    making = ClassifierBuilder(db)
    with pytest.raises(AnnotatorError, match="cannot be the name"):
        making.start("../../x", 0.01)
    making.start("gone", 0.01)
    making.cancel()
    making.wait()
    assert making.made is None and not list(db.paths.downloads.glob("*/files/gone*"))
    making.start("wrong", 0.9)  # what the command refuses is what the page says
    making.wait()
    assert making.made is not None and "0.9 is not possible" in making.made.error


def test_export_page_without_a_model_states_how_to_train_one(db):
    said = words(fine(shown(db, "export")))
    assert "No model yet" in said

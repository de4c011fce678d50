"""Classes guessed from their names before any click, by a tiny text-image network whose right answers are known."""

import json
import uuid

import numpy as np
import pytest
from conftest import CLASSES, COLORS, draw
from harness.tiny_networks import save_colored_clip
from streamlit.testing.v1 import AppTest

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import SetupSettings, set_up_project
from annotator.queues.image_queue import format_worker_line
from annotator.records import Decision
from annotator.snapshot.run_predictions import read_predictions
from annotator.snapshot.suggestions import find_missing_positives
from annotator.store.classes import classes, name_texts
from annotator.store.classes.stored_patch_scores import PatchScores
from annotator.store.database.database import Database
from annotator.store.gallery.image_history import load_image_history
from annotator.store.labels import decisions
from annotator.store.networks import configuration
from annotator.store.runs import prediction_sources, runs
from annotator.store.runs.prediction_sources import CLASS_NAMES_SOURCE
from annotator.ui.access import served_project
from annotator.ui.pages.settings import class_names_section
from annotator.worker.process import Worker
from annotator.worker.training.schedule import Schedule
from spmll.backbones.sources.open_clip_models import load
from spmll.statistics.metrics import hidden_average_precision, mean_average_precision
from spmll.zero_shot.prompts import BACKGROUND_PROMPTS, build_prompts, list_names

pytest.importorskip("open_clip")
IMAGES = 48
GRAY = {"grey": (170, 170, 170)}
TEXTS = {
    "fox": build_prompts(list_names("fox")),
    "heron": build_prompts(list_names("heron", (), "grey, with a long neck")),
    "deer": build_prompts([*list_names("deer"), "brown stag"]),
    "grey": list(BACKGROUND_PROMPTS),
}
SCRIPT = """
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.pages.settings import settings_page
with show_errors():
    settings_page.page()
"""


def shown(number):
    """What is drawn on an image."""
    return tuple(name for bit, name in enumerate(CLASSES) if (number * 5 + 1) >> bit & 1)


TRUTH = np.array([[name in shown(number) for name in CLASSES] for number in range(IMAGES)])


@pytest.fixture(scope="session")
def network(tmp_path_factory):
    """The name of a network that knows the colours of the drawings, and by which texts they are meant."""
    folder = tmp_path_factory.mktemp("clip") / "colours"
    return f"open_clip:local-dir:{save_colored_clip(folder, COLORS | GRAY, TEXTS)}"


@pytest.fixture(scope="session")
def drawings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawings")
    for number in range(IMAGES):
        draw(folder / f"{number:02}.jpg", shown(number), seed=number)
    return folder


@pytest.fixture
def db(tmp_path, drawings, network, class_file):
    """Nothing is answered, and nothing embedded."""
    set_up_project(tmp_path / "project", images_folder=drawings, class_file=class_file)
    made = Database(tmp_path / "project")
    configuration.set_backbone(made, network)
    return made


def guess_of(db):
    """(N, C) probabilities of the source, images in the order of their names."""
    (opened,) = [one for one in prediction_sources.open_scores(db) if one.source.name == CLASS_NAMES_SOURCE]
    image_ids = [image_id for _, image_id in sorted(db.tuples("SELECT name, id FROM image"))]
    return prediction_sources.load_aligned_scores(
        db, opened, image_ids, [one.id for one in classes.load_active_classes(db)]
    )


def test_first_suggestions_without_answers_come_from_class_names_and_are_reported_as_such(db, annotator):
    facts = json.loads(annotator("names", "project", "--now", "--json").stdout)
    assert facts["guessed"]["images"] == facts["guessed"]["patches"] == IMAGES and not facts["guessed"]["error"]
    assert mean_average_precision(guess_of(db), TRUTH) > 0.95
    assert Schedule().is_due(db, IMAGES)  # nobody has to ask for the first suggestions
    annotator("train", "project")
    run = runs.load_current_run(db)
    assert run is not None and run.epochs == 0
    predictions = read_predictions(db)
    assert predictions is not None
    images = [image_id for _, image_id in sorted(db.tuples("SELECT name, id FROM image"))]
    of_run = predictions.align(predictions.probabilities, images, predictions.class_ids)
    assert mean_average_precision(of_run.astype(np.float32), TRUTH) > 0.95
    first = find_missing_positives(db, limit=20)
    assert np.mean([TRUTH[images.index(one.image_id), one.class_id - 1] for one in first]) > 0.9
    status = json.loads(annotator("status", "project", "--json").stdout)
    assert status["run"]["guessed"] == "from the names alone"
    assert "from the names alone" in annotator("status", "project").stdout
    worker = Worker(db.paths.project)
    assert "from the names alone" in format_worker_line(db, run)
    worker.close()
    one = first[0]
    answer = Decision(
        str(uuid.uuid4()), "label", "Ann", "suggestion", image_id=one.image_id, class_id=one.class_id, state=1
    )
    decisions.save(db, [answer])
    ((name, score),) = load_image_history(db, one.image_id)[0].models
    assert name == CLASS_NAMES_SOURCE and score == pytest.approx(one.probability, abs=0.01)


def test_editing_class_texts_and_templates_recomputes_the_class_name_predictions(db, annotator):
    annotator("names", "project", "--text", "deer=brown stag| brown stag ", "--now")
    assert name_texts.load_texts(db) == {3: ("brown stag",)}
    assert mean_average_precision(guess_of(db), TRUTH) > 0.95
    first = name_texts.load_newest_guess(db)
    annotator("names", "project", "--text", "deer=fox", "--now")
    assert name_texts.load_newest_guess(db).wording != first.wording
    guess = guess_of(db)
    assert np.corrcoef(guess[:, 0], guess[:, 2])[0, 1] > 0.99
    assert [path.name for path in db.paths.patch_scores("x").parent.iterdir()] == [
        name_texts.load_newest_guess(db).wording
    ]
    annotator("names", "project", "--text", "deer=", "--template", "{}", "--template", "a {} on the grass")
    assert name_texts.load_texts(db) == {} and name_texts.load_templates(db) == ("{}", "a {} on the grass")
    said = annotator("names", "project").stdout
    assert "soon" in said and "heron | heron, grey, with a long neck" in said
    annotator("names", "project", "--template", "")
    wording = name_texts.build_wording(db)
    assert wording is not None and wording.prompts[2] == tuple(build_prompts(["deer"]))


def test_names_command_refuses_invalid_texts_templates_and_backbones_and_stores_nothing(db, annotator, tmp_path):
    wrong = annotator("names", "project", "--text", "hern=x", "--text", "fox", code=1).stderr
    assert "'heron'" in wrong and "'fox' is not of the form" in wrong
    assert "has no {}" in annotator("names", "project", "--template", "a photo", code=1).stderr
    assert "at most 200" in annotator("names", "project", "--text", "fox=" + "x" * 300, code=1).stderr
    assert name_texts.load_texts(db) == {} and not db.get_setting(name_texts.TEMPLATES_SETTING, [])
    with pytest.raises(AnnotatorError, match="no class 99"):
        name_texts.set_texts(db, {99: ["x"]})
    for name in (CLASS_NAMES_SOURCE, "Class names"):
        (tmp_path / "scores.csv").write_text("image,fox\n00.jpg,0.5\n")
        refused = annotator("predictions", "project", "scores.csv", "--name", name, code=1).stderr
        assert "Give these another name" in refused
    configuration.set_backbone(db, "efficientnet_lite0")
    refused = annotator("names", "project", "--now", code=1).stderr
    assert "knows no texts" in refused and "open_clip:" in refused
    assert "knows no texts" in json.loads(annotator("names", "project", "--json").stdout)["state"]


def test_invalid_class_name_settings_are_ignored(db):
    for key, value in (
        (name_texts.TEXTS_SETTING, [1]),
        (name_texts.TEMPLATES_SETTING, "x"),
        (prediction_sources.NEWEST_GUESS_SETTING, {"at": 1}),
    ):
        db.set_setting(key, value)
    db.set_setting(name_texts.TEXTS_SETTING, {"1": ["", 3], "x": ["y"], "2": "z"})
    wording = name_texts.build_wording(db)
    assert name_texts.load_texts(db) == {} and name_texts.load_newest_guess(db) == name_texts.NameGuess()
    assert wording is not None and wording.prompts[0] == tuple(build_prompts(["fox"]))


def test_missing_tokenizer_is_reported_once_and_adds_no_prediction_source(db, monkeypatch):
    from spmll.backbones.sources import open_clip_models

    def gone(open_clip, architecture):
        raise OSError("no such file")

    monkeypatch.setattr(open_clip_models, "_load_tokenizer", gone)
    worker = Worker(db.paths.project)
    worker.image_embedder.embed_missing()
    assert worker.name_guesser.publish_if_due(all_embedded=True)
    assert not worker.name_guesser.publish_if_due(all_embedded=True) and not worker.name_guesser.compare_some_patches()
    worker.close()
    assert "tokenizer" in name_texts.describe_state(db) and not prediction_sources.load_sources(db)


def test_class_name_predictions_score_whole_images_before_patches_and_add_new_images(db, drawings):
    worker = Worker(db.paths.project)
    worker.image_embedder.embed_missing()
    assert worker.name_guesser.publish_if_due(all_embedded=True)
    before = name_texts.load_newest_guess(db)
    assert (before.images, before.patches) == (IMAGES, 0) and "so far" in name_texts.describe_state(db)
    assert not worker.name_guesser.publish_if_due(all_embedded=True)
    assert worker.name_guesser.compare_some_patches()
    worker.close()
    wording = name_texts.build_wording(db)
    kept = PatchScores(db, wording.key, 3)
    assert 0 < len(kept.image_ids) <= IMAGES  # kept, should the worker be killed now
    for path in db.paths.patch_scores(wording.key).glob("*.npz"):
        path.write_bytes(path.read_bytes()[:100])
    assert len(PatchScores(db, wording.key, 3).image_ids) == 0
    worker = Worker(db.paths.project)
    while worker.name_guesser.compare_some_patches():
        pass
    assert name_texts.load_newest_guess(db).patches == IMAGES and "their patches" in name_texts.describe_state(db)
    set_up_project(
        db.paths.project, images_folder=draw(db.paths.project.parent / "more" / "a.jpg", ("fox",), seed=99).parent
    )
    worker.image_embedder.embed_missing()
    assert not worker.name_guesser.publish_if_due(all_embedded=False)
    assert worker.name_guesser.publish_if_due(all_embedded=True)
    while worker.name_guesser.compare_some_patches():
        pass
    worker.close()
    assert (name_texts.load_newest_guess(db).images, name_texts.load_newest_guess(db).patches) == (
        IMAGES + 1,
        IMAGES + 1,
    )


def test_class_name_predictions_stay_off_after_removal_and_survive_a_change_of_backbone(db, annotator):
    annotator("names", "project", "--now")
    annotator("predictions", "project", "--remove", CLASS_NAMES_SOURCE)
    assert not name_texts.is_on(db) and "Switched off" in name_texts.describe_state(db)
    worker = Worker(db.paths.project)
    worker.image_embedder.embed_missing()
    assert not worker.name_guesser.publish_if_due(all_embedded=True)
    worker.close()
    annotator("names", "project", "--on", "--now")
    assert name_texts.has_source(db)
    configuration.set_backbone(db, "efficientnet_lite0")
    assert "stays in use" in name_texts.describe_state(db) and name_texts.has_source(db)
    annotator("names", "project", "--off")
    assert not name_texts.has_source(db)


def test_settings_page_edits_templates_and_turns_class_name_predictions_off(db, annotator):
    served_project.open_project(db.paths.project)
    test = AppTest.from_string(SCRIPT, default_timeout=120)
    test.session_state["name"] = "Ann"
    test.run()
    assert not test.exception and "soon" in " ".join(one.value for one in test.caption)
    known = classes.load_ordered_classes(db)
    table = [{"texts": "fox | vixen"}, {"texts": None}, {"texts": "deer"}]
    assert class_names_section.find_edits(known, {1: "fox", 2: "heron", 3: "deer"}, table) == {
        1: ["fox ", " vixen"],
        2: [""],
    }
    area = next(one for one in test.text_area if (one.key or "").startswith("names_templates"))
    area.set_value("a photo")
    next(one for one in test.button if one.label == "Save templates").click()
    test.run()
    assert "has no {}" in " ".join(one.value for one in test.error).replace("\\", "").replace("\u2060", "")
    area = next(one for one in test.text_area if (one.key or "").startswith("names_templates"))
    area.set_value("a {}")
    next(one for one in test.button if one.label == "Save templates").click()
    test.run()
    assert name_texts.load_templates(db) == ("a {}",) and not test.exception
    test.toggle(key="names_on").set_value(False).run()
    assert not name_texts.is_on(db) and not test.exception


@pytest.mark.training
def told_one_label_an_image(db):
    """(N, C) bool, in the order of names: what was told."""
    told = np.zeros(TRUTH.shape, bool)
    for row, shows in enumerate(TRUTH):
        if shows.any():
            told[row, np.flatnonzero(shows)[row % shows.sum()]] = True
    images = [image_id for _, image_id in sorted(db.tuples("SELECT name, id FROM image"))]
    decisions.save(
        db,
        [
            Decision(str(uuid.uuid4()), "label", "Ann", "click", image_id=images[row], class_id=column + 1, state=1)
            for row, column in np.argwhere(told).tolist()
        ],
    )
    return told


def hidden(db, told):
    """The average precision of what was not told, by the current run."""
    predictions = read_predictions(db)
    images = [image_id for _, image_id in sorted(db.tuples("SELECT name, id FROM image"))]
    scores = predictions.align(predictions.probabilities, images, predictions.class_ids).astype(np.float32)
    return hidden_average_precision(scores, told.astype(np.int8), TRUTH).cells


def test_methods_using_class_names_outperform_em_and_refuse_training_without_name_scores(db, annotator):
    told, found = told_one_label_an_image(db), {}
    for name in ("em", "vlpl", "gr+names"):
        annotator("train", "project", "--method", name)
        assert runs.load_current_run(db).method == name
        found[name] = hidden(db, told)
    assert found["em"] < min(found["vlpl"], found["gr+names"])
    annotator("names", "project", "--off")
    refused = annotator("train", "project", code=1).stderr
    assert "needs scores of the names of classes" in refused and "Switched off" in refused
    assert runs.load_current_run(db).method == "gr+names", "the run of before stays"
    annotator("train", "project", "--method", "em")
    refused = annotator("train", "project", "--method", "vlpl", code=1).stderr
    assert "switched off in this project" in refused and "annotator names PROJECT --on" in refused
    annotator("names", "project", "--on")
    configuration.set_backbone(db, "efficientnet_lite0")
    refused = annotator("train", "project", "--method", "vlpl", code=1).stderr
    assert "efficientnet_lite0 knows no texts" in refused and "open_clip:" in refused
    assert configuration.get_method(db) == "em"


def test_project_creation_refuses_a_text_method_for_a_backbone_without_texts(drawings, class_file, tmp_path):
    with pytest.raises(AnnotatorError, match="knows no texts"):
        set_up_project(
            tmp_path / "other", images_folder=drawings, class_file=class_file, settings=SetupSettings(method="vlpl")
        )
    assert not (tmp_path / "other").exists()


def test_bench_methods_ranks_methods_with_class_names_above_those_without(drawings, network, tmp_path, annotator):
    rows = [f"{number:02}.jpg,{'|'.join(shown(number))}" for number in range(IMAGES)]
    (tmp_path / "truth.csv").write_text("image,labels\n" + "\n".join(rows) + "\n")
    words = ("bench", "methods", "--images", drawings, "--truth", "truth.csv", "--seeds", "1", "--json")
    words = (*words, "--methods", "em,vlpl,gr,gr+names", "--no-split", "--share", "0.25", "--backbone", network)
    rows = {row["method"]: row for row in json.loads(annotator(*words).stdout)["rows"]}
    assert rows["vlpl"]["hidden_ap"] > rows["em"]["hidden_ap"]
    assert rows["gr+names"]["hidden_ap"] > rows["gr"]["hidden_ap"]


@pytest.mark.slow
def test_bench_names_reports_accuracy_and_refuses_a_backbone_without_texts(drawings, network, tmp_path, annotator):
    rows = [f"{number:02}.jpg,{'|'.join(shown(number))}" for number in range(IMAGES)]
    (tmp_path / "truth.csv").write_text("image,labels\n" + "\n".join(rows) + "\n")
    words = ("bench", "names", "--images", drawings, "--truth", "truth.csv", "--backbone")
    figures = json.loads(annotator(*words, network, "--json").stdout)["figures"]
    assert figures["names alone, patches too: mAP"] > 0.95 > figures["chance AP"]
    assert figures["with names, one label an image: hidden mAP"] > 0.8
    assert figures["with names: actions to recall 0.95"] > 0
    refused = annotator(*words, "efficientnet_lite0", "--no-effort", code=1).stderr
    assert "knows no texts" in refused


def test_load_refuses_a_local_open_clip_model_whose_pickle_takes_precedence(tmp_path):
    for name in ("open_clip_config.json", "mine.safetensors", "open_clip_pytorch_model.bin"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=r"open_clip_pytorch_model.bin beside mine.safetensors.*Rename mine"):
        load(f"open_clip:local-dir:{tmp_path}")
    (tmp_path / "mine.safetensors").rename(tmp_path / "open_clip_model.safetensors")
    with pytest.raises(ValueError, match="cannot be loaded"):  # for what it holds
        load(f"open_clip:local-dir:{tmp_path}")

"""Networks compared on the answers of a project, beside the one in use."""

import json

import numpy as np
import pytest
from conftest import draw
from harness import adaptable
from harness.feature_shards import add_features
from streamlit.testing.v1 import AppTest

from annotator.errors import AnnotatorError
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.images import registration
from annotator.store.networks import adapted_networks, configuration, machine_settings, network_comparisons
from annotator.ui.access import served_project
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.worker.duties.network_comparer import compare_networks
from annotator.worker.features import backbone, image_embedder
from annotator.worker.process import Worker, compare_pending_networks

SCRIPT = """
from annotator.ui.shared.message_boxes import show_errors
from importlib import import_module
from annotator.ui.shared.navigation import find_page_module
one = import_module(find_page_module("{name}"))
with show_errors():
    one.page()
"""


@pytest.fixture(autouse=True)
def own_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("ANNOTATOR_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A project with a tiny network, all of whose images are complete; and a second network."""
    folder = tmp_path_factory.mktemp("comparing")
    first = adaptable.make_network(folder / "first")
    photos = adaptable.draw_all(folder / "photos")
    db = adaptable.make_project(folder / "project", photos, first)
    return db, f"local-dir:{first}", f"local-dir:{adaptable.make_network(folder / 'second')}"


@pytest.fixture
def show(project):
    """Runs a page of the project for somebody called Ann."""
    served_project.open_project(project)

    def run(name):
        test = AppTest.from_string(SCRIPT.format(name=name), default_timeout=120)
        test.session_state["name"] = "Ann"
        return test.run()

    return run


def with_features(db, name, rows):
    """As if a network had given these features (n, D) of images 1 .. n."""
    ids = np.arange(1, len(rows) + 1)
    db.paths.features(name).mkdir(parents=True)
    add_features(db, name, ids, rows.astype(np.float16), np.repeat(rows[:, None].astype(np.float16), 9, 1))


def test_backbone_comparison_prefers_informative_embeddings_to_noise(made):
    db, first, _ = made
    known = np.zeros((adaptable.IMAGES, 32), np.float32)
    random = np.random.default_rng(0)
    for number in range(adaptable.IMAGES):
        for place, name in enumerate(adaptable.CLASSES):
            known[number, place] = 3.0 if name in adaptable.shown(number) else 0.0
    known += random.normal(0, 0.1, known.shape)
    with_features(db, "sees", known)
    with_features(db, "blind", random.normal(0, 1, known.shape))
    better = compare_networks(db, "blind", "sees")
    assert better.is_better and better.ap_after > 0.95 > better.ap_before and better.ap_low > 0
    assert better.answers == better.images * better.classes and better.images == adaptable.IMAGES
    worse = compare_networks(db, "sees", "blind")
    assert not worse.is_better and worse.ap_high < 0
    assert (better.verdict, worse.verdict) == ("is better than", "is worse than")
    for name in ("sees", "blind"):
        assert network_comparisons.delete_network(db, name) and not db.paths.features(name).exists()
    assert len(open_features(db, first)) == adaptable.IMAGES


def test_backbone_command_compares_switches_to_and_removes_a_backbone(made, annotator):
    db, first, second = made
    project = db.paths.project
    done = json.loads(annotator("backbone", project, second, "--json").stdout)
    assert done["in_use"] == first and not done["wanted"]
    (compared,) = done["compared"]
    assert compared["name"] == second and compared["against"] == first and not compared["error"]
    assert not compared["is_better"] and abs(compared["ap_after"] - compared["ap_before"]) < 1e-6  # the same weights
    assert len(open_features(db, second)) == adaptable.IMAGES
    assert "is not clearly better than" in annotator("backbone", project).stdout
    assert "is in use" in annotator("backbone", project, "--remove", first, code=1).stderr
    annotator("backbone", project, "--use", second)
    assert configuration.get_backbone(db) == second and adapted_networks.get_next_backbone(db) == ""
    assert len(open_features(db, first)) == adaptable.IMAGES, "nothing is deleted unasked"
    annotator("backbone", project, "--use", first)
    annotator("backbone", project, "--remove", second)
    assert not db.paths.features(second).exists() and network_comparisons.load_comparisons(db) == []
    assert "nothing of" in annotator("backbone", project, "--remove", second, code=1).stderr


def test_comparison_with_a_missing_backbone_keeps_the_backbone_in_use(made, annotator, tmp_path):
    db, first, _ = made
    assert "There is no network" in annotator("backbone", db.paths.project, f"local-dir:{tmp_path}", code=1).stderr
    assert "network in use" in annotator("backbone", db.paths.project, "--compare", first, code=1).stderr
    # as the page would, while it was still there
    network_comparisons.request_comparison(db, [f"local-dir:{tmp_path / 'gone'}"])
    assert compare_pending_networks(db.paths.project, lambda done, of: None)
    (compared,) = network_comparisons.load_comparisons(db)
    assert "There is no network" in compared.error and network_comparisons.load_requested(db) == []
    assert configuration.get_backbone(db) == first
    network_comparisons.delete_network(db, compared.name)


def test_worker_measures_a_backbone_speed_requested_by_the_settings_page(show, project, db, tmp_path, monkeypatch):
    monkeypatch.setattr(backbone, "DEFAULT_MEASURE_SECONDS", 0.05)
    test = show("settings")
    test.selectbox(key="network").select("efficientnet_lite0").run()
    test.button(key="network_speed").click().run()
    assert (
        network_comparisons.load_requested_speeds(db) == ["efficientnet_lite0"]
        and test.button(key="network_speed").disabled
    )
    network_comparisons.request_speed(db, f"local-dir:{tmp_path / 'gone'}")
    worker = Worker(project)
    try:
        assert worker.network_comparer.measure_speed() and worker.network_comparer.measure_speed()
        assert not worker.network_comparer.measure_speed()
    finally:
        worker.close()
    assert (
        machine_settings.load_speeds()["efficientnet_lite0"].images_a_second > 0
        and network_comparisons.load_requested_speeds(db) == []
    )
    assert "gone could not be measured: There is no network" in heartbeat.load_worker_state(db).last_error
    test = show("settings")
    test.selectbox(key="network").select("efficientnet_lite0").run()
    assert "network_speed" not in [button.key for button in test.button]


def test_backbone_comparison_with_too_few_answers_is_refused(project):
    from annotator.errors import NothingToLearn

    db = Database(project)
    random = np.random.default_rng(0).normal(0, 1, (3, 8)).astype(np.float32)
    for name in ("one", "two"):
        with_features(db, name, random)
    with pytest.raises(NothingToLearn, match="two could not be compared with one"):
        compare_networks(db, "one", "two")


@pytest.mark.slow
def test_settings_page_accepts_a_license_compares_backbones_and_switches(show, db):
    name = "convnext_tiny.dinov3_lvd1689m"
    test = show("settings")
    test.selectbox(key="network").select(name).run()
    assert test.button(key="network_compare").disabled
    test.checkbox(key="accept_dinov3-license").check().run()
    test.button(key="network_compare").click().run()
    assert network_comparisons.load_requested(db) == [name] and machine_settings.load_accepted_licenses() == {
        "dinov3-license"
    }
    test.button(key=f"network_stop_{name}").click().run()
    assert network_comparisons.load_requested(db) == []
    judged = {"ap_before": 0.5, "ap_after": 0.6, "ap_low": 0.05, "ap_high": 0.15, "is_better": True}
    facts = network_comparisons.NetworkComparison(
        name, "efficientnet_lite2", 1.0, images=9, answers=99, classes=3, **judged
    )
    network_comparisons.save_comparison(db, facts)
    test = show("settings")
    assert not test.exception and any(escape_markdown("0.500 to 0.600") in text.value for text in test.markdown)
    test.button(key=f"network_use_{name}").click().run()
    assert adapted_networks.get_next_backbone(db) == name
    with pytest.raises(AnnotatorError, match="is in use"):
        network_comparisons.delete_network(db, name)
    test.button(key=f"network_stop_{name}").click().run()
    test.button(key=f"network_remove_{name}").click().run()
    assert network_comparisons.load_comparisons(db) == [] and adapted_networks.get_next_backbone(db) == ""


@pytest.mark.slow
def test_new_images_are_embedded_while_another_backbone_is_compared(made, tmp_path, monkeypatch):
    db, first, second = made
    monkeypatch.setattr(image_embedder, "SHARD_SECONDS", 0.0)
    monkeypatch.setattr(image_embedder, "MIN_TRAINING_INTERVAL_SECONDS", 0.0)
    new = draw(tmp_path / "new" / "one.jpg", seed=1000)
    network_comparisons.request_comparison(db, [second])
    worker, places = Worker(db.paths.project), []

    def keep_up() -> bool:
        if not places:
            assert registration.register_folder(db, new.parent, [new.name]).added == 1
        worker.embed_and_train()
        places.append([len(open_features(db, name)) for name in (first, second)])
        return False

    try:
        worker.image_embedder.embed_missing()
        worker.network_comparer.prepare_and_compare(keep_up)
    finally:
        worker.close()
    of_first, of_second = places[0]
    assert of_first == adaptable.IMAGES + 1 > of_second > 0

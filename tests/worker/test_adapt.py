"""`annotator adapt` on a real project with a tiny network: plan, kill and go on, judge, keep, switch, no peeking."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import timm
from conftest import CLASSES
from harness.adaptable import IMAGES, draw_all, make_network, make_project
from safetensors.numpy import load_file

from annotator.errors import AlreadyRunning, AnnotatorError, NothingToLearn
from annotator.exchange.project_setup import set_up_project
from annotator.progress_callbacks import ignore_steps
from annotator.store.database.database import Database
from annotator.store.disk import processes
from annotator.store.disk.durable import make_folder
from annotator.store.labels import decisions
from annotator.store.networks import adaptation, adapted_networks, configuration
from annotator.store.runs import runs
from annotator.worker.adapting import stage_inputs
from annotator.worker.adapting.adapt_now import adapt_now
from annotator.worker.adapting.adaptation_plan import PLAN_FILE, make_plan, read_plan
from annotator.worker.adapting.adaptation_progress import AdaptationProgress
from annotator.worker.adapting.local_training import Training
from annotator.worker.features.backbone import load_project_backbone
from annotator.worker.process import Worker, prepare_next_backbone


@pytest.fixture(scope="session")
def network(tmp_path_factory) -> Path:
    return make_network(tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="session")
def drawn(tmp_path_factory) -> Path:
    return draw_all(tmp_path_factory.mktemp("adapt") / "photos")


@pytest.fixture
def db(tmp_path, drawn, network):
    return make_project(tmp_path / "project", drawn, network)


def adapt(db: Database, *words: str, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "annotator", "adapt", str(db.paths.project), "--json", *words],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def weights(db: Database, name: str) -> dict[str, np.ndarray]:
    return load_file(db.paths.adapted_network(name) / "model.safetensors")


def test_adaptation_trains_evaluates_and_stores_a_backbone_that_timm_loads(db, tmp_path):
    said: list[str] = []
    done = adapt_now(db.paths.project, epochs=2, notify=said.append)
    made = done.network
    assert made is not None and made == adapted_networks.load_networks(db)[0]
    assert "This takes about" in said[0] and adaptation.get_running(db) is None
    assert made.parent == configuration.get_backbone(db) and made.licence == "mit"
    assert (made.name, made.epochs, made.classes) == (f"{Path(made.parent).name}.adapted1", 2, 3)
    held = set(range(1, IMAGES + 1)) - set(adapted_networks.load_fitted_image_ids(db, made.name).tolist())
    assert made.held_out_images == len(held) > 3 and made.images == IMAGES - len(held)
    assert made.is_better == (made.ap_low > 0) == done.in_use and made.known_answers == 3 * IMAGES
    adapted_networks.export(db, made.name, tmp_path / "mine")
    whole = timm.create_model(f"local-dir:{tmp_path / 'mine'}", pretrained=True)
    assert whole.num_classes == 3
    card = (tmp_path / "mine" / "README.md").read_text()
    assert "mit" in card and "fox" in card and sorted(p.name for p in (tmp_path / "mine").iterdir()) == [
        "README.md", "config.json", "model.safetensors",
    ]  # fmt: skip
    assert not db.paths.unfinished_adaptation.exists(), "what only the training needs is gone"


@pytest.mark.slow
@pytest.mark.process
def test_killed_adaptation_resumes_and_yields_the_same_weights(db, processes):
    whole = adapt_now(db.paths.project, epochs=3).network
    assert whole is not None
    adapted_networks.set_next_backbone(db, "")
    process = adapt(db, "--epochs", "3")
    processes.append(process)
    checkpoint = db.paths.unfinished_adaptation / "checkpoint.safetensors"
    while process.poll() is None and not checkpoint.exists():
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    if read_plan(db.paths.unfinished_adaptation) is None:
        pytest.skip("it was over before it was killed")
    decisions.undo(db, "Ann")  # what is decided meanwhile changes nothing in it
    with pytest.raises(AnnotatorError, match="--anew"):
        adapt_now(db.paths.project, epochs=5)
    said: list[str] = []
    plan = read_plan(db.paths.unfinished_adaptation)
    again = adapt_now(db.paths.project, notify=said.append).network
    assert again is not None and "Going on" in said[0]
    assert plan is not None
    make_folder(db.paths.unfinished_adaptation)
    plan.write(db.paths.unfinished_adaptation)  # as if it had been killed when all was done
    assert adapt_now(db.paths.project).network == again and len(adapted_networks.load_networks(db)) == 2
    there, here = weights(db, whole.name), weights(db, again.name)
    assert all(np.array_equal(there[name], here[name]) for name in there)
    assert again.ap_after == whole.ap_after


@pytest.mark.slow
@pytest.mark.process
def test_paused_adaptation_keeps_its_checkpoint_and_a_concurrent_second_one_is_refused(db, processes):
    process = adapt(db, "--epochs", "400")
    processes.append(process)
    while process.poll() is None and not (db.paths.unfinished_adaptation / "checkpoint.safetensors").exists():
        time.sleep(0.01)
    with pytest.raises(AlreadyRunning, match="being adapted already"):
        adaptation.claim(db, "local")
    state = adaptation.get_running(db)
    assert state is not None and state.doing == "training" and state.of == 400
    adaptation.set_request(db, "pause")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and 0 < json.loads(out)["epochs"] < 400
    assert adaptation.get_request(db) == "" and adaptation.get_result(db)["kind"] == "paused"
    assert (db.paths.unfinished_adaptation / "checkpoint.safetensors").exists()


def test_worker_start_cleans_up_finished_adaptations_and_keeps_resumable_ones(db):
    folder, plan = db.paths.unfinished_adaptation, make_plan(db, configuration.get_backbone(db), 1)
    made = adapt_now(db.paths.project, epochs=1).network
    assert made is not None and made.name == plan.name and not folder.exists()
    adaptation.set_result(db, {})
    make_folder(folder)
    plan.write(folder)  # as if it had been killed before the folder was removed
    Worker(db.paths.project).close()
    assert not folder.exists() and adaptation.get_running(db) is None
    assert adaptation.get_result(db)["name"] == made.name
    make_folder(folder)
    (folder / "inputs").touch()
    Worker(db.paths.project).close()
    assert not folder.exists(), "inputs without a plan are of no use"
    make_folder(folder)
    make_plan(db, configuration.get_backbone(db), 1).write(folder)  # of the next network, which can go on
    Worker(db.paths.project).close()
    assert read_plan(folder) is not None


def test_project_uses_the_old_backbone_until_all_new_embeddings_exist(db):
    made = adapt_now(db.paths.project, epochs=1).network
    assert made is not None
    worker = Worker(db.paths.project)
    before = worker.train()
    adapted_networks.set_next_backbone(db, made.name)
    assert configuration.get_backbone(db) == made.parent == before.backbone
    assert worker.backbone_preparer.prepare() and configuration.get_backbone(db) == made.name
    assert adapted_networks.get_next_backbone(db) == ""
    worker.image_embedder.embed_missing()
    after = worker.train()
    assert after.backbone == made.name and after.images == IMAGES
    assert runs.load_current_run(db).id == after.id
    backbone = load_project_backbone(db, made.name)
    features = worker.context.get_features()
    worker.close()
    assert backbone.dimensions == features.features.shape[1] and features.folder == db.paths.features(made.name)
    # Answers of images that it was fitted to say nothing of how far its scores are to be believed.
    from annotator.worker.training import fitted_images
    from annotator.worker.training.training_set import load_training_set

    known = load_training_set(db, features)
    fitted = np.isin(features.image_ids[known.rows], adapted_networks.load_fitted_image_ids(db, made.name))
    assert known.unbiased.all() and fitted.any() and not fitted.all()
    unseen = fitted_images.mark_biased(known, fitted).unbiased
    assert not unseen[fitted].any() and unseen[~fitted].all()


def test_adapted_backbone_that_is_not_better_is_stored_but_not_used(db):
    made = adapt_now(db.paths.project, epochs=1).network
    assert made is not None
    worse = json.loads((db.paths.adapted_network(made.name) / "facts.json").read_text()) | {"is_better": False}
    assert adapted_networks.AdaptedNetwork(**worse).is_better is False
    if not made.is_better:
        assert adapted_networks.get_next_backbone(db) == "" and configuration.get_backbone(db) == made.parent
    adapted_networks.set_next_backbone(db, made.name)
    configuration.set_backbone(db, made.parent)  # somebody chooses: nothing is prepared any more
    assert adapted_networks.get_next_backbone(db) == "" and prepare_next_backbone(
        db.paths.project, lambda done, of: None
    )
    assert configuration.get_backbone(db) == made.parent


def test_adaptation_plan_always_holds_out_the_same_images_and_requires_answers(
    db, tmp_path, drawn, class_file, network
):
    plan = make_plan(db, configuration.get_backbone(db), 2)
    assert 0 < plan.held_out.sum() < IMAGES / 2
    again = make_plan(db, configuration.get_backbone(db), 2)
    assert np.array_equal(plan.held_out, again.held_out)
    plan.write(tmp_path)
    read = read_plan(tmp_path)
    assert read is not None and np.array_equal(read.labels, plan.labels) and read.class_names == list(CLASSES)
    fewer = stage_inputs.limit_to_disk_space(plan, 10, 10 * (2 * 30 + int(plan.held_out.sum())))
    assert len(fewer.fitted_rows) == 30 and len(fewer.held_out_rows) == plan.held_out.sum()
    set_up_project(tmp_path / "empty", images_folder=drawn, class_file=class_file)
    empty = Database(tmp_path / "empty")
    configuration.set_backbone(empty, f"local-dir:{network}")
    with pytest.raises(NothingToLearn, match="0 images with answers"):
        adapt_now(empty.paths.project)
    assert adaptation.get_result(empty)["kind"] == "error" and adaptation.get_running(empty) is None


def test_adaptation_estimate_trains_no_backbone(db):
    done = adapt_now(db.paths.project, estimate_only=True)
    assert done.network is None and done.estimate.total_seconds > 0
    assert not db.paths.unfinished_adaptation.exists() and adaptation.get_result(db)["kind"] == "estimate"


@pytest.mark.slow
@pytest.mark.process
def test_worker_starts_an_adaptation_requested_by_the_page(db):
    from annotator.worker.adapting.backbone_switching import AdaptationStarter
    from annotator.worker.features.worker_context import WorkerContext

    starter = AdaptationStarter(WorkerContext(db))
    adaptation.set_request(db, "estimate")
    until = time.monotonic() + 60
    while adaptation.get_result(db).get("kind") != "estimate" and time.monotonic() < until:
        starter.start_if_requested()
        time.sleep(0.05)
    assert adaptation.get_result(db)["images"] == IMAGES
    while adaptation.get_request(db) and time.monotonic() < until:
        time.sleep(0.05)
    assert adaptation.get_request(db) == ""
    starter.stop_process()


@pytest.mark.slow
def test_adaptation_ignores_leftover_inputs_and_checkpoint_without_a_plan(db):
    plan = make_plan(db, configuration.get_backbone(db), 1)
    first = adapt_now(db.paths.project, epochs=1).network
    assert first is not None
    adapted_networks.set_next_backbone(db, "")
    # Killed while the folder was removed: the plan is gone; a checkpoint and inputs stay, made here of another network.
    work = AdaptationProgress(db, adaptation.claim(db, "local"), ignore_steps)
    Training(db, plan, db.paths.unfinished_adaptation, work).make_inputs()
    adaptation.release(db)
    for path in (db.paths.unfinished_adaptation / "inputs").rglob("*.npy"):
        np.save(path, np.full_like(np.load(path), 1))
    (db.paths.unfinished_adaptation / "checkpoint.safetensors").write_bytes(b"of another training")
    (db.paths.unfinished_adaptation / PLAN_FILE).unlink()
    again = adapt_now(db.paths.project, epochs=1).network
    assert again is not None and again.ap_after == first.ap_after
    there, here = weights(db, first.name), weights(db, again.name)
    assert all(np.array_equal(there[name], here[name]) for name in there)
    # Killed before it got its name: what was written of it goes.
    left = processes.build_temporary_path(db.paths.adapted_network(f"{again.name.removesuffix('2')}3"))
    left = left.with_name(left.name.replace(f"-{os.getpid():x}-", "-7fffffff-"))
    left.mkdir()
    third = adapt_now(db.paths.project, epochs=1).network
    assert third is not None and third.name.endswith("3") and not left.exists()

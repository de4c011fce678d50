"""The worker as a process: it embeds, trains, publishes, goes on after a kill, and says what is wrong."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid

import numpy as np
import pytest
from conftest import CLASSES, draw
from harness.answers import answer_cell
from harness.blind_answers import say
from harness.feature_shards import add_features, add_shard, read_made, write_arrays
from harness.served import until
from harness.trained_projects import shown
from harness.worker_runs import start

from annotator.exchange.project_setup import set_up_project
from annotator.records import Batch, Decision
from annotator.settings import BUSY_EXIT_STATUS, DEFAULT_BACKBONE
from annotator.snapshot.project_status import collect_status
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.database import heartbeat, jobs
from annotator.store.database.caches import Caches
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import count_features, open_features
from annotator.store.features.project_contents import ProjectContents
from annotator.store.features.shards import list_shards
from annotator.store.images import images
from annotator.store.labels import decisions, disagreed_cells, image_overlap
from annotator.store.networks import configuration
from annotator.store.runs import runs
from annotator.worker.features.worker_context import Stopped
from annotator.worker.process import Worker
from annotator.worker.training import schedule
from annotator.worker.training.training_set import load_training_set


def test_training_set_keeps_present_and_absent_labels_and_masks_unsure_ones(db):
    for class_id, state in ((1, 1), (2, 1), (3, -1)):
        answer_cell(db, 1, class_id, state)
    answer_cell(db, 2, 1, 1)
    answer_cell(db, 2, 2, 0)
    answer_cell(db, 3, 1, 0)
    answer_cell(db, 5, 1, 1)
    add_features(db, "x", np.array([3, 2, 1]), np.zeros((3, 4)), np.zeros((3, 9, 4)))
    cache = open_features(db, "x")
    known = load_training_set(db, cache)
    assert cache.image_ids[known.rows].tolist() == [2, 1], "3 is only unsure, 5 has no features yet"
    assert known.labels.tolist() == [[1, 0, 0], [1, 1, -1]]
    assert known.mask.tolist() == [[True, False, True], [True, True, True]]
    assert known.newest_decision_id == 7


def test_disagreement_of_two_annotators_is_masked_until_resolved(db):
    answer_cell(db, 1, 1, 1)
    answer_cell(db, 1, 2, 1)
    blind = [(1, 1, -1, None), (1, 2, 1, None)]
    assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Ben", "reading", blind, None, 4000)]).refused
    add_features(db, "x", np.array([1]), np.zeros((1, 4)), np.zeros((1, 9, 4)))
    known = load_training_set(db, open_features(db, "x"))
    assert (known.labels.tolist(), known.mask.tolist()) == ([[0, 1, 0]], [[False, True, True]])
    assert not db.caches.count()
    settled = Decision("s", "label", "Cid", "settlement", image_id=1, class_id=1, state=-1)
    assert not decisions.save(db, [settled]).refused
    known = load_training_set(db, open_features(db, "x"))
    assert (known.labels.tolist(), known.mask.all()) == ([[-1, 1, 0]], True)


def test_disagreement_of_three_annotators_trains_the_probable_label_until_resolved(db):
    """Cid, whose answer is the label of image 1, finds nothing anywhere; on image 2 Ann and he alone differ."""
    image_overlap.set_overlap(db, 3, 1.0)
    for image_id in range(1, 20):
        for who in ("Cid", "Ann", "Ben")[: 2 if image_id == 2 else 3]:
            say(db, image_id, who, () if who == "Cid" else (1 + image_id % 2,))
    add_features(db, "x", np.array([1, 2]), np.zeros((2, 4)), np.zeros((2, 9, 4)))
    cache = open_features(db, "x")
    known = load_training_set(db, cache)
    assert (known.labels.tolist(), known.mask.tolist()) == (
        [[-1, 1, -1], [0, -1, -1]],
        [[True] * 3, [False, True, True]],
    )
    assert known.unbiased.tolist() == [[True, False, True], [False, True, True]], "nobody's answer is no unbiased one"
    assert decisions.load_labels(db, [1])[1].state == -1 and (1, 2) in disagreed_cells.find_disagreed_cells(db, [1])
    settled = Decision("s", "label", "Rita", "settlement", image_id=1, class_id=2, state=-1)
    assert not decisions.save(db, [settled]).refused
    known = load_training_set(db, cache)
    assert known.labels[0].tolist() == [-1, -1, -1] and known.mask[0].all()
    say(db, 1, "Dan", (2,))
    assert not load_training_set(db, cache).mask[0, 1], (
        "the settlement is contradicted, and Ann and Ben do not outvote it"
    )
    decisions.undo(db, "Rita")
    assert load_training_set(db, cache).labels[0].tolist() == [-1, 1, -1]
    say(db, 2, "Ben", (1,))
    assert load_training_set(db, cache).labels.tolist() == [[-1, 1, -1], [1, -1, -1]], (
        "answered by a third person since"
    )
    decisions.undo(db, "Ben")
    assert not load_training_set(db, cache).mask[1, 0]


def test_damaged_embedding_shard_is_deleted_and_the_others_are_read(tmp_path):
    add_shard(tmp_path / "f", np.array([1, 2]), np.ones((2, 4)), np.ones((2, 9, 4)))
    (tmp_path / "f" / "torn.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{half")
    cache = read_made(tmp_path / "f")
    assert cache.image_ids.tolist() == [1, 2]
    assert not (tmp_path / "f" / "torn.safetensors").exists()


@pytest.mark.parametrize("images", [(5, 2), (2, 5)])
def test_feature_cache_uses_the_embedding_size_of_most_images_until_a_new_shard_differs(tmp_path, images):
    first = 1
    for count, numbers in zip(images, (4, 6), strict=True):
        ids = np.arange(first, first + count)
        add_shard(tmp_path, ids, np.ones((count, numbers)), np.ones((count, 9, numbers)))
        first += count
    cache = read_made(tmp_path)
    assert cache.features.shape == ((5, 4) if images == (5, 2) else (5, 6)) and cache.regions[:].shape[:2] == (5, 9)
    assert len(cache.left_out) == 1 and len(list(tmp_path.iterdir())) == 2, "the others are left where they are"
    cache.refresh(add_shard(tmp_path, np.array([1]), np.ones((1, 8)), np.ones((1, 9, 8))))
    assert cache.features.shape == (1, 8) and cache.regions[:].shape == (1, 9, 8) and len(list(tmp_path.iterdir())) == 2


def test_inconsistent_embedding_shard_is_deleted(tmp_path):
    odd = {"image_ids": np.arange(1, 6), "features": np.ones((4, 4), np.float16), "regions": np.ones((4, 9, 4))}
    write_arrays(tmp_path, odd | {"contents": np.zeros((5, 8), np.uint8)})
    cache = read_made(tmp_path)
    assert len(cache.image_ids) == 0 and not list(tmp_path.iterdir()) and "of another type" in cache.left_out[0]


def test_images_of_damaged_embedding_shards_and_shards_without_regions_are_embedded_again(db):
    network = "efficientnet_lite2"
    configuration.set_backbone(db, network)
    folder = db.paths.features(network)
    old = {"image_ids": np.arange(1, 25), "features": np.zeros((24, 1280), np.float16)}
    write_arrays(folder, old | {"contents": ProjectContents(db).load_hashes(old["image_ids"])})
    answer_cell(db, 1, 1)
    worker = Worker(db.paths.project)
    try:
        assert count_features(folder, Caches(), ProjectContents(db)) == 0
        assert len(worker.image_embedder.find_missing()) == 24 and worker.image_embedder.find_missing()[0] == 1
        worker.image_embedder.embed_missing()
        cache = worker.context.get_features()
        assert not worker.image_embedder.find_missing() and sorted(cache.image_ids) == list(range(1, 25))
        assert cache.regions.shape == (24, 9, 1280)
        # Its map is 9 x 9, so that regions do not overlap.
        assert np.abs(cache.regions[:].mean(1) - cache.features[:]).max() < 0.01
        features = cache.features[:]
        assert features.any(1).all(), "they are the new ones"
    finally:
        worker.close()
    shard = list_shards(folder)[0]
    whole = bytearray(shard.read_bytes())
    whole[-1] ^= 1
    shard.write_bytes(whole)
    worker = Worker(db.paths.project)
    try:
        assert len(worker.image_embedder.find_missing()) >= 4, "a byte has changed"
        worker.image_embedder.embed_missing()
        again = worker.context.get_features()
        order, before = np.argsort(again.image_ids), np.argsort(cache.image_ids)
        assert not worker.image_embedder.find_missing() and np.allclose(
            again.features[order], features[before], atol=1e-2
        )
    finally:
        worker.close()


@pytest.mark.parametrize("seconds", [20.0, 600.0])
def test_worker_pauses_as_long_as_it_trained_and_shorter_when_a_training_is_requested(answered, seconds):
    worker = Worker(answered.paths.project)
    try:
        assert worker.training.is_due()
        worker.train()
        assert worker.training.schedule.last_seconds > 0
        for number in range(schedule.MIN_NEW_DECISIONS):
            answer_cell(answered, 1 + number, 1)
        for ago, alone, asked in ((0.5, False, seconds > 60), (1.5, True, True)):
            worker.training.schedule.last_end, worker.training.schedule.last_seconds = (
                time.monotonic() - ago * seconds,
                seconds,
            )
            assert worker.training.is_due() == alone
            jobs.request_training(answered)
            assert worker.training.is_due() == asked
            for job in jobs.claim(answered, "train", limit=9):
                jobs.finish(answered, job)
    finally:
        worker.close()


@pytest.fixture
def answered(db):
    """A project with made-up features and a click on each of its images."""
    add_features(db, DEFAULT_BACKBONE, np.arange(1, 25), np.eye(24), np.zeros((24, 9, 24)))
    for image_id in range(1, 25):
        answer_cell(db, image_id, 1 + image_id % 3)
    return db


DIES_WHILE_TRAINING = """
import os, signal, sys
from pathlib import Path
from annotator.worker.process import Worker
worker = Worker(Path(sys.argv[1]))
worker.context.check_stop = lambda: os.kill(os.getpid(), signal.SIGKILL)  # asked between two epochs
worker.train()
"""


@pytest.mark.slow
@pytest.mark.process
def test_training_request_is_retried_after_a_worker_kill_but_not_after_the_third(answered):
    worker = Worker(answered.paths.project)
    worker.run_once()
    worker.close()
    jobs.request_training(answered)
    for death in (1, 2, 3):
        words = [sys.executable, "-c", DIES_WHILE_TRAINING, str(answered.paths.project)]
        assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
        worker = Worker(answered.paths.project)
        assert worker.training.is_due() == (death < 3), (
            f"after {death} deaths; nothing but the request calls for a training"
        )
        worker.close()


CORES_WHILE_UPDATES_RUN = """
import sys
from pathlib import Path
from threading import Thread
from annotator.store.database.database import Database
from annotator.worker.training.update_thread import UpdateThread
import torch

other = Thread(target=lambda: print(torch.get_num_threads()))
other.start()
other.join()
updates = UpdateThread(Database(Path(sys.argv[1])), lambda: None)
updates.start()
updates.close()
print(torch.get_num_threads())
"""


@pytest.mark.process
def test_model_update_thread_leaves_the_core_count_of_trainings_unchanged(project):
    words = [sys.executable, "-c", CORES_WHILE_UPDATES_RUN, str(project)]
    done = subprocess.run(words, env=os.environ | {"OMP_NUM_THREADS": "2"}, capture_output=True, text=True, check=True)
    without, beside = done.stdout.split()
    assert beside == without


def test_training_request_survives_a_stop_and_ends_with_the_run_or_its_error(answered, monkeypatch):
    worker = Worker(answered.paths.project)
    try:
        worker.run_once()
        jobs.request_training(answered)
        worker.stop()
        with pytest.raises(Stopped):
            worker.train()
        assert jobs.is_training_requested(answered) and runs.load_current_run(answered).id == 1, (
            "it was stopped in the middle"
        )
        worker.context.stop.clear()
        assert worker.train().id > 1 and not jobs.is_training_requested(answered)
        jobs.request_training(answered)
        answered.set_setting("backbone", "resnet19")
        worker.training.train_or_record_error()
        assert (
            not jobs.is_training_requested(answered)
            and "nothing to learn" in heartbeat.load_worker_state(answered).last_error
        )
        assert not worker.training.is_due(), "an error is noted once, not tried again and again"
    finally:
        worker.close()
    assert answered.value("SELECT count(*) FROM job") == 0


def test_image_with_non_finite_embeddings_is_embedded_again_and_does_not_stop_training(db):
    features = np.eye(24, dtype=np.float16)
    features[4, 2] = np.nan
    add_features(db, DEFAULT_BACKBONE, np.arange(1, 25), features, np.zeros((24, 9, 24)))
    for image_id in range(1, 25):
        answer_cell(db, image_id, 1 + image_id % 3)
    worker = Worker(db.paths.project)
    try:
        worker.training.train_or_record_error()
        assert runs.load_current_run(db).images == 23 and worker.image_embedder.find_missing() == [5]
        [told] = collect_status(db)["left_out"]
        assert "1 images" in told and "not finite" in told and str(worker.context.cache.folder) in told
    finally:
        worker.close()


@pytest.mark.process
def test_worker_once_embeds_trains_and_publishes_suggestions_that_find_hidden_labels(db, project, annotator):
    for image_id in range(1, 17):
        if shown(image_id):
            answer_cell(db, image_id, shown(image_id)[0])
    answer_cell(db, 20, 1, -1)
    said = annotator("worker", project, "--once").stdout
    assert "Run 1: auto" in said and "24 images published" in said
    rows = json.loads(annotator("suggest", project, "--json", "--limit", 100).stdout)
    assert rows == sorted(rows, key=lambda row: -row["probability"])
    answered = {(one.image_id, one.class_id) for one in decisions.load_all_labels(db)}
    ids, names = images.load_ids_by_name(db), {name: number + 1 for number, name in enumerate(CLASSES)}
    cells = [(ids[row["image"]], names[row["class"]]) for row in rows]
    assert not answered & set(cells)
    assert {row["run"] for row in rows} == {1}
    best, worst = cells[: len(cells) // 3], cells[-len(cells) // 3 :]
    right = [sum(class_id in shown(image_id) for image_id, class_id in part) for part in (best, worst)]
    assert right[0] > right[1], f"of the first third {right[0]} are right, of the last {right[1]}"
    status = json.loads(annotator("status", project, "--json").stdout)
    assert (status["features"], status["run"]["newer_decisions"], status["worker"]["state"]) == (24, 0, "stopped")
    annotator("train", project, "--method", "an")
    assert runs.load_current_run(db).method == "an"
    assert configuration.get_method(db) == "an"


@pytest.mark.process
def test_worker_once_without_a_present_label_reports_it_and_keeps_the_embeddings(project, annotator):
    told = annotator("worker", project, "--once", code=1).stderr
    assert "nothing to learn from yet" in told
    status = json.loads(annotator("status", project, "--json").stdout)
    assert status["features"] == 24
    assert "nothing to learn from" in status["last_error"]


@pytest.mark.process
def test_second_worker_is_refused_and_the_running_process_is_named(project, processes, annotator, db):
    first = start(project, processes)
    until(lambda: heartbeat.load_worker_state(db).pid == first.pid)
    told = annotator("worker", project, "--once", code=1).stderr
    assert f"process {first.pid}" in told
    # Started by the app it says so by its status alone: the app tries again later and shows no error.
    annotator("worker", project, "--watched", code=BUSY_EXIT_STATUS)
    assert first.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(["embedding"], id="once"),
        pytest.param(["loading the network", "embedding", "embedding"], id="again and again", marks=pytest.mark.slow),
    ],
)
def test_restarted_worker_completes_embeddings_and_training_after_kills(tmp_path, class_file, processes, kills):
    for number in range(72):
        draw(tmp_path / "many" / f"{number}.jpg", CLASSES[number % 3 : number % 3 + 1], seed=number)
    set_up_project(tmp_path / "project", images_folder=tmp_path / "many", class_file=class_file)
    db = Database(tmp_path / "project")
    ids = {image.id: int(image.name.removesuffix(".jpg")) for image in images.load_all_images(db)}
    for image_id, number in list(ids.items())[:30]:
        answer_cell(db, image_id, number % 3 + 1)
    for wanted in kills:
        worker = start(tmp_path / "project", processes)
        until(lambda worker=worker, wanted=wanted: heartbeat.load_worker_state(db).pid == worker.pid
              and heartbeat.load_worker_state(db).state == wanted)  # fmt: skip
        os.kill(worker.pid, 9)
        worker.wait()
    worker = start(tmp_path / "project", processes)
    # Loading and embedding take 15 s alone, and much longer where other processes want the cores.
    run = until(
        lambda: runs.load_current_run(db) and runs.load_current_run(db).images == 72 and runs.load_current_run(db), 240
    )
    assert count_features(db.paths.features(DEFAULT_BACKBONE), db.caches, ProjectContents(db)) == 72
    found = read_predictions(db)
    assert found.image_ids.tolist() == sorted(ids)
    assert np.isfinite(found.probabilities.astype(float)).all()
    # Decisions that are newer than the run are in its probabilities soon, and, by themselves, in another training.
    for image_id in range(31, 31 + schedule.MIN_NEW_DECISIONS):
        answer_cell(db, image_id, 1)
    newest = decisions.get_newest_decision_id(db)
    until(lambda: runs.load_current_run(db).last_decision_id >= newest)
    assert runs.load_current_run(db).version > 0
    until(lambda: runs.load_current_run(db).id > run.id)
    assert runs.load_current_run(db).trained_decision_id >= newest
    # And a heat map asked for now is there soon, as a small picture.
    run = runs.load_current_run(db)
    jobs.request_heatmap(db, run.id, 40, 2)
    path = db.paths.heatmap(run.id, 40, 2)
    until(path.exists)
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size < 60_000
    # What cannot be drawn is told to whoever asked.
    jobs.request_heatmap(db, run.id, 41, 99)
    assert "knows nothing of class 99" in until(lambda: jobs.get_heatmap_error(db, run.id, 41, 99))
    worker.terminate()
    assert worker.wait(120) == 0
    assert heartbeat.load_worker_state(db).state == "stopped"


@pytest.mark.process
def test_init_with_an_unavailable_backbone_suggests_another_and_creates_no_project(tmp_path, photos, annotator):
    told = annotator("init", tmp_path / "p", "--images", photos, "--backbone", "resnet19", code=1).stderr
    assert "efficientnet_lite0" in told or "resnet18" in told
    assert not (tmp_path / "p").exists()

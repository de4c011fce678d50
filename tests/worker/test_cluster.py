"""`annotator embed` and `adapt` on a real Ray cluster of two processes, whatever is killed; clear words."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from harness.adaptable import draw_all, make_network, make_project
from harness.cluster_images import IMAGES, cluster_photos, each_once, site, times_in_shards
from harness.ray_cluster import HEAD_ARGUMENTS, MACHINE_ARGUMENTS, Cluster
from harness.remote_images import server, use_server

from annotator.errors import AlreadyRunning
from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.networks import adaptation, adapted_networks, embedding_claim
from annotator.worker.adapting.adapt_now import adapt_now
from spmll import plugins

__all__ = ["cluster_photos", "server", "site"]  # fixtures

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install 'multilabel-annotator[cluster]'",
    ),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]

ROOT = Path(__file__).resolve().parents[2]
BUCKET = "adapting"


@pytest.fixture(scope="module")
def cluster(server):
    """Its machines reach a bucket, at a server of S3."""
    import boto3

    with pytest.MonkeyPatch.context() as patch:
        use_server(patch, server)
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        started = Cluster()
        started.add_machine()
        yield started
        started.end()


@pytest.fixture
def here(cluster, site, monkeypatch):
    """Commands that run in this process use the cluster, and have the network."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(site)
    plugins.find_plugins.cache_clear()
    yield
    plugins.find_plugins.cache_clear()


@pytest.fixture
def db(tmp_path, cluster_photos, here):
    set_up_project(tmp_path / "project", images_folder=cluster_photos)
    opened = Database(tmp_path / "project")
    opened.set_setting("backbone", "slow")
    return opened


@pytest.fixture
def command(site, processes):
    """Starts the program in a process of its own, which is killed."""

    def start(*words: object) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "annotator", *map(str, words)],
            env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        processes.append(process)
        return process

    return start


@contextlib.contextmanager
def meanwhile(act: Callable[[], bool]) -> Iterator[None]:
    """Within, `act` is called again and again in a thread until it returns True, which it has to."""
    is_over, done = threading.Event(), []

    def repeat() -> None:
        while not is_over.wait(0.02):
            if act():
                done.append(True)
                return

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    assert done, "it was over before"


def features(db: Database) -> np.ndarray:
    """Of all images, by id."""
    cache = open_features(db, "slow")
    return cache.features[np.argsort(cache.image_ids)]


def test_cluster_commands_in_the_scaling_document_match_those_used_by_the_tests():
    recipe = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert f"    ray start --head {HEAD_ARGUMENTS.format(port=6379, client=10001)}\n" in recipe
    assert f"    ray start {MACHINE_ARGUMENTS.format(head='HEAD', port=6379)}\n" in recipe
    assert "    annotator embed birds --on ray://HEAD:10001\n" in recipe


@pytest.mark.slow
@pytest.mark.parametrize("stops", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_cluster_embeds_every_image_once_with_the_local_result_after_kills_and_stops(
    stops, cluster, db, command, annotator
):
    process = command("embed", db.paths.project, "--on", "ray")
    while process.poll() is None and ((state := embedding_claim.get_running(db)) is None or not state.done):
        time.sleep(0.02)
    process.kill()
    process.wait()
    before, killed = sum(times_in_shards(db).values()), []

    def kill_a_worker_and_stop() -> bool:
        state, workers = embedding_claim.get_running(db), cluster.list_workers()
        if not killed and state is not None and state.workers and workers:
            killed.append(os.kill(workers[0], signal.SIGKILL))
        if not killed or (stops and (state is None or not before < state.done < state.of)):
            return False
        with pytest.raises(AlreadyRunning, match="being embedded already: on ray://"):
            embedding_claim.claim(db, "local")
        if stops:
            os.kill(os.getpid(), signal.SIGTERM)
        return True

    with meanwhile(kill_a_worker_and_stop):
        words = ["embed", db.paths.project, "--on", cluster.client, "--json"]
        result = json.loads(annotator(*words, code=130 if stops else 0).stdout.splitlines()[-1])
    assert before < IMAGES and result["failed"] == 0 and 1 <= result["workers"] <= 2 and result["images_a_second"] > 0
    assert result["images"] > 0 and result["images"] + result["remaining"] == IMAGES - before
    assert (result["remaining"] > 0) == stops
    assert sum(times_in_shards(db).values()) == IMAGES - result["remaining"]
    assert embedding_claim.get_running(db) is None and not cluster.list_workers()
    annotator("embed", db.paths.project)
    assert times_in_shards(db) == each_once(db)
    here_and_there = features(db)
    for path in list(db.paths.features("slow").iterdir()):
        path.unlink()
    annotator("embed", db.paths.project)
    assert np.allclose(here_and_there, features(db), atol=2e-3)
    assert json.loads(annotator("embed", db.paths.project, "--json").stdout)["images"] == 0, "nothing remains"


def checkpoints(storage: str) -> set[str]:
    """Names of the checkpoints below this address."""
    import boto3

    rows = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"{storage.rpartition('/')[2]}/")["Contents"]
    return {part for row in rows for part in row["Key"].split("/") if part.startswith("checkpoint_2")}


SLOWER = [pytest.param(what, marks=pytest.mark.slow) for what in ("worker", "command")]


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["nothing", *SLOWER])
def test_two_machines_adapt_a_backbone_together_and_resume_from_the_last_epoch(
    killed, cluster, here, command, tmp_path
):
    storage = f"s3://{BUCKET}/{killed}"
    db = make_project(tmp_path / "project", draw_all(tmp_path / "photos"), make_network(tmp_path / "network"))
    epochs = 2 if killed == "nothing" else 8

    def is_training() -> bool:
        state = adaptation.get_running(db)
        return state is not None and state.of == epochs and state.done > 1

    def kill_a_worker() -> bool:
        if not is_training():
            return False
        workers = cluster.list_workers("RayTrainWorker")
        assert len(workers) == 2, "not both machines worked"
        os.kill(workers[-1], signal.SIGKILL)
        before.update(checkpoints(storage))
        return True

    said: list[str] = []
    before: set[str] = set()
    if killed == "command":
        process = command("adapt", db.paths.project, "--on", "ray", "--storage", storage, "--epochs", epochs)
        while process.poll() is None and not is_training():
            time.sleep(0.02)
        assert process.poll() is None
        process.kill()
        process.wait()
        before.update(checkpoints(storage))
    with meanwhile(kill_a_worker) if killed == "worker" else contextlib.nullcontext():
        wanted = None if killed == "command" else epochs
        done = adapt_now(db.paths.project, on="ray", epochs=wanted, storage=storage, notify=said.append)
    assert done.epochs_done == epochs and any("with 2 processes" in sentence for sentence in said)
    assert ("Going on with" in said[0]) == (killed == "command")
    made = adapted_networks.load_networks(db)[0]
    assert done.network == made and made.ap_after > 0.5
    assert not db.paths.unfinished_adaptation.exists()
    again = checkpoints(storage) - before
    # One of each epoch and one of the end; a kill costs no epoch that was said to be done, and two were. A third may
    # have been on its way, and be there twice.
    assert len(again) == epochs + 1 if killed == "nothing" else 0 < len(again) <= epochs, (before, again)

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
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from adaptable import draw_all, make_network, make_project
from conftest import draw

from annotator.benchmark.harness.ray_cluster import HEAD, MACHINE, Cluster
from annotator.errors import AlreadyRunning
from annotator.exchange.setup import set_up
from annotator.store import adapted, adapting, embedding
from annotator.store.database import Database
from annotator.store.features.cache import FeatureCache
from annotator.worker.adapting.adapt_now import adapt_now
from models import plugins

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install 'multilabel-annotator[cluster]'",
    ),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]

ROOT = Path(__file__).resolve().parent.parent
IMAGES = 300
# A network that only the machine of the project knows, and that takes a while: its weights have to travel.
SLOW = """
import torch
from torch import nn
from models.backbones.pretrained import Pretrained

def slow():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 20, 7), nn.ReLU(), nn.Conv2d(20, 20, 7), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return Pretrained(nn.Sequential(*layers), "", 128, (0.5,) * 3, (0.5,) * 3, "bilinear")
"""


@pytest.fixture(scope="module")
def cluster():
    started = Cluster()
    started.add()
    yield started
    started.end()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for number in range(IMAGES):
        draw(folder / f"{number:03}.jpg", seed=number)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "slow_network.py").write_text(SLOW)
    facts = folder / "slow_network-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-network\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[annotator.backbones]\nslow = slow_network:slow\n")
    return folder


@pytest.fixture
def here(cluster, site, monkeypatch):
    """Commands that run in this process use the cluster, and have the network."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(site)
    plugins.plugins.cache_clear()
    yield
    plugins.plugins.cache_clear()


@pytest.fixture
def db(tmp_path, photos, here):
    set_up(tmp_path / "project", images_folder=photos)
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


def times_in_shards(db: Database) -> Counter[int]:
    """Image id -> how many shards hold it."""
    from safetensors.numpy import load_file

    shards = db.paths.features("slow").glob("*.safetensors")
    return Counter(int(image_id) for path in shards for image_id in load_file(path)["image_ids"])


def features(db: Database) -> np.ndarray:
    """Of all images, by id."""
    cache = FeatureCache(db.paths.features("slow"))
    cache.refresh()
    return cache.features[np.argsort(cache.image_ids)]


def each_once(db: Database) -> dict[int, int]:
    return dict.fromkeys(range(1, IMAGES + 1), 1)


def test_the_recipe_starts_the_machines_as_these_tests_do():
    recipe = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert f"    ray start --head {HEAD.format(port=6379, client=10001)}\n" in recipe
    assert f"    ray start {MACHINE.format(head='HEAD', port=6379)}\n" in recipe
    assert "    annotator embed birds --on ray://HEAD:10001\n" in recipe


def test_two_machines_embed_every_image_once_and_as_this_machine_does_whatever_is_killed(
    cluster, db, command, annotator
):
    process = command("embed", db.paths.project, "--on", "ray")
    while process.poll() is None and ((state := embedding.running(db)) is None or not state.done):
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = sum(times_in_shards(db).values())

    def kill_a_worker() -> bool:
        state, workers = embedding.running(db), cluster.workers()
        if state is None or not state.workers or not workers:
            return False
        os.kill(workers[0], signal.SIGKILL)
        return True

    with meanwhile(kill_a_worker):
        out = annotator("embed", db.paths.project, "--on", cluster.client, "--json").stdout
    result = json.loads(out.splitlines()[-1])
    assert before < IMAGES and (result["images"], result["failed"], result["remaining"]) == (IMAGES - before, 0, 0)
    assert 1 <= result["workers"] <= 2 and result["images_a_second"] > 0
    assert times_in_shards(db) == each_once(db)
    assert embedding.running(db) is None and not cluster.workers()
    there = features(db)
    for path in list(db.paths.features("slow").iterdir()):
        path.unlink()
    annotator("embed", db.paths.project)
    assert np.allclose(there, features(db), atol=2e-3)
    assert json.loads(annotator("embed", db.paths.project, "--json").stdout)["images"] == 0, "nothing remains"


def test_it_stops_at_a_signal_keeps_what_is_done_and_goes_on_elsewhere(cluster, db, annotator):
    def stop() -> bool:
        if (state := embedding.running(db)) is None or not state.done:
            return False
        with pytest.raises(AlreadyRunning, match="being embedded already: on ray, by process"):
            embedding.claim(db, "local")
        os.kill(os.getpid(), signal.SIGTERM)
        return True

    with meanwhile(stop):
        stopped = json.loads(annotator("embed", db.paths.project, "--on", "ray", "--json", code=130).stdout)
    assert 0 < stopped["images"] < IMAGES and stopped["remaining"] == IMAGES - stopped["images"]
    assert sum(times_in_shards(db).values()) == stopped["images"] and not cluster.workers()
    annotator("embed", db.paths.project)
    assert times_in_shards(db) == each_once(db)


@pytest.mark.parametrize("kills", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_two_machines_adapt_a_network_together_and_a_lost_worker_costs_an_epoch(kills, cluster, here, tmp_path):
    network = make_network(tmp_path / "network")
    db = make_project(tmp_path / "project", draw_all(tmp_path / "photos"), network)
    epochs = 8 if kills else 2

    def kill_a_worker() -> bool:
        if (state := adapting.running(db)) is None or state.of != epochs or not state.done:
            return False
        workers = cluster.workers("RayTrainWorker")
        assert len(workers) == 2, "not both machines worked"
        os.kill(workers[-1], signal.SIGKILL)
        return True

    said: list[str] = []
    with meanwhile(kill_a_worker) if kills else contextlib.nullcontext():
        done = adapt_now(db.paths.project, on="ray", epochs=epochs, say=said.append)
    assert done.epochs_done == epochs and "with 2 processes" in said[1]
    made = adapted.networks(db)[0]
    assert done.network == made and made.ap_after > 0.5
    assert not db.paths.adapting.exists()


def test_a_machine_that_cannot_embed_is_left_out_and_named(db, annotator, tmp_path, monkeypatch):
    (tmp_path / "broken" / "annotator").mkdir(parents=True)
    (tmp_path / "broken" / "annotator" / "__init__.py").write_text("import no_such_module\n")
    only = Cluster(path=tmp_path / "broken")
    try:
        for name, value in only.environment.items():
            monkeypatch.setenv(name, value)
        err = annotator("embed", db.paths.project, "--on", only.client, code=1).stderr
    finally:
        only.end()
    assert "has no complete annotator" in err and "no_such_module" in err
    assert embedding.running(db) is None

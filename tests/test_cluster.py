"""`annotator embed` on a real Ray cluster of two processes: every image once, whatever is killed; clear words."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
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

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install 'multilabel-annotator[cluster]'",
    ),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]

ROOT = Path(__file__).resolve().parent.parent
IMAGES, KILLS = 300, 2
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
def db(tmp_path, photos):
    set_up(tmp_path / "project", images_folder=photos)
    opened = Database(tmp_path / "project")
    opened.set_setting("backbone", "slow")
    return opened


@pytest.fixture
def embed(db, site, processes):
    """Starts `annotator embed` in a process of its own."""

    def start(*words: str, environment: dict[str, str]) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "annotator", "embed", str(db.paths.project), *words],
            env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    return start


def ended(process: subprocess.Popen, code: int = 0) -> tuple[str, str]:
    out, err = process.communicate(timeout=240)
    assert process.returncode == code, err
    return out, err


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


def test_two_machines_embed_every_image_once_and_as_this_machine_does(cluster, db, embed):
    out, _ = ended(embed("--on", cluster.client, "--json", environment=cluster.environment))
    result = json.loads(out.splitlines()[-1])
    assert (result["images"], result["failed"], result["remaining"]) == (IMAGES, 0, 0)
    assert 1 <= result["workers"] <= 2 and result["images_a_second"] > 0
    assert times_in_shards(db) == each_once(db)
    assert embedding.running(db) is None and not cluster.workers()
    there = features(db)
    for path in list(db.paths.features("slow").iterdir()):
        path.unlink()
    ended(embed(environment={}))
    assert np.allclose(there, features(db), atol=2e-3)
    out, _ = ended(embed("--json", environment={}))
    assert json.loads(out)["images"] == 0, "nothing remains"


def test_killed_workers_cost_only_their_chunks(cluster, db, embed):
    process = embed("--on", "ray", "--json", environment=cluster.environment)
    killed, done = 0, -1
    while process.poll() is None and killed < KILLS:
        state = embedding.running(db)
        if state is not None and state.workers and state.done > done and (workers := cluster.workers()):
            os.kill(workers[killed % len(workers)], signal.SIGKILL)
            killed, done = killed + 1, state.done
        time.sleep(0.05)
    out, _ = ended(process)
    assert killed == KILLS, "it was over before"
    assert json.loads(out.splitlines()[-1])["images"] == IMAGES
    assert times_in_shards(db) == each_once(db)


def test_it_stops_at_a_signal_and_goes_on_later(cluster, db, embed):
    process = embed("--on", "ray", "--json", environment=cluster.environment)
    while process.poll() is None and ((state := embedding.running(db)) is None or not state.done):
        time.sleep(0.05)
    with pytest.raises(AlreadyRunning, match="being embedded already: on ray, by process"):
        embedding.claim(db, "local")
    process.send_signal(signal.SIGTERM)
    stopped = json.loads(ended(process, code=130)[0])
    assert 0 < stopped["images"] < IMAGES and stopped["remaining"] == IMAGES - stopped["images"]
    killed = embed("--on", "ray", "--json", environment=cluster.environment)
    while killed.poll() is None and ((state := embedding.running(db)) is None or state.done <= stopped["images"]):
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    ended(embed("--on", "ray", environment=cluster.environment))
    assert times_in_shards(db) == each_once(db)


@pytest.mark.parametrize("kills", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_two_machines_adapt_a_network_together_and_a_lost_worker_costs_an_epoch(kills, cluster, tmp_path, processes):
    network = make_network(tmp_path / "network")
    db = make_project(tmp_path / "project", draw_all(tmp_path / "photos"), network)
    epochs = 8 if kills else 2
    words = ["adapt", str(db.paths.project), "--on", "ray", "--epochs", str(epochs), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "annotator", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | cluster.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    processes.append(process)
    if kills:
        while process.poll() is None and ((state := adapting.running(db)) is None or state.of != 8 or not state.done):
            time.sleep(0.05)
        workers = cluster.workers("RayTrainWorker")
        assert len(workers) == 2, "it was over before, or not both machines worked"
        os.kill(workers[-1], signal.SIGKILL)
    out, err = ended(process)
    result = json.loads(out.splitlines()[-1])
    assert result["epochs"] == epochs and "with 2 processes" in err
    made = adapted.networks(db)[0]
    assert result["network"]["name"] == made.name and made.ap_after > 0.5
    assert not db.paths.adapting.exists()


def test_a_machine_that_cannot_embed_is_left_out_and_named(cluster, db, embed, tmp_path):
    (tmp_path / "broken" / "annotator").mkdir(parents=True)
    (tmp_path / "broken" / "annotator" / "__init__.py").write_text("import no_such_module\n")
    only = Cluster(path=tmp_path / "broken")
    try:
        err = ended(embed("--on", only.client, environment=only.environment), code=1)[1]
    finally:
        only.end()
    assert "has no complete annotator" in err and "no_such_module" in err
    assert embedding.running(db) is None

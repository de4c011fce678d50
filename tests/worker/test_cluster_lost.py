"""Pieces of a Ray cluster that die under a command: it ends with a sentence, and the same command goes on."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness.cluster_images import IMAGES, cluster_photos, each_once, site, times_in_shards
from harness.ray_cluster import Cluster
from harness.served import until

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.networks import embedding_claim

__all__ = ["cluster_photos", "site"]  # fixtures

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install 'multilabel-annotator[cluster]'",
    ),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]
ROOT = Path(__file__).resolve().parents[2]
GO_ON = "the same command goes on from there"
QUICKLY = {"RAY_gcs_rpc_server_reconnect_timeout_s": "3", "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "3"}


@pytest.fixture
def cluster(monkeypatch):
    for name, value in QUICKLY.items():
        monkeypatch.setenv(name, value)
    started = Cluster()
    for name, value in started.environment.items():
        monkeypatch.setenv(name, value)
    yield started
    started.end()


@pytest.fixture
def slower(site, tmp_path):
    """The network of harness/cluster_images.py with more to compute: a cluster is killed in the middle of the work."""
    folder = shutil.copytree(site, tmp_path / "site")
    text = (folder / "slow_network.py").read_text()
    more = "nn.Conv2d(20, 160, 7), nn.Conv2d(160, 20, 7), nn.AdaptiveAvgPool2d"
    (folder / "slow_network.py").write_text(text.replace("nn.AdaptiveAvgPool2d", more))
    return folder


@pytest.fixture
def db(tmp_path, cluster_photos):
    set_up_project(tmp_path / "project", images_folder=cluster_photos)
    opened = Database(tmp_path / "project")
    opened.set_setting("backbone", "slow")
    return opened


AGENT, HEAD, DOOR = "raylet/raylet", "gcs_server", "ray.util.client.server"
CASES = [(AGENT, "ray"), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((HEAD, "ray"), (DOOR, "ray://")))]


@pytest.mark.slow
@pytest.mark.parametrize(("killed", "on"), CASES)
def test_embed_command_reports_a_lost_cluster_and_a_rerun_embeds_only_missing_images(
    killed, on, cluster, db, slower, processes
):
    def run(*words: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "annotator", "embed", str(db.paths.project), "--json", *words],
            env=os.environ | {"PYTHONPATH": f"{slower}{os.pathsep}{ROOT}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    process = run("--on", cluster.client if on == "ray://" else on)
    until(lambda: process.poll() is not None or ((state := embedding_claim.get_running(db)) and state.done))
    for pid in cluster.list_processes(killed):
        os.kill(pid, signal.SIGKILL)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 1
    assert "The Ray cluster" in said and GO_ON in said and "Traceback" not in said, said
    there = sum(times_in_shards(db).values())
    assert there < IMAGES and embedding_claim.get_running(db) is None
    again = run("--on", "local")
    assert again.wait(120) == 0
    assert times_in_shards(db) == each_once(db)
    assert json.loads(again.stdout.read())["images"] == IMAGES - there, "what was finished was done again"


@pytest.mark.slow
def test_sudden_exit_message_is_printed_after_a_kill_and_not_after_a_normal_end():
    for ending, said in (("os._exit(1)", "gone\n"), ("os.kill(os.getpid(), 9)", "gone\n"), ("pass", "")):
        code = (
            "import os\nfrom annotator.cluster.exit_watcher import report_sudden_exit\nwith "
            f"report_sudden_exit('gone\\n'): {ending}"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
        assert done.stderr == said, ending

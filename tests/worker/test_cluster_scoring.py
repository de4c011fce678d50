"""Scoring and comparing methods on a real Ray cluster, one machine of two cores: as here, whatever is killed."""

import importlib.util
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from benchmarks.scale import steps
from conftest import draw
from harness.ray_cluster import Cluster
from typer.testing import CliRunner

import spmll
from annotator.cli import app
from annotator.cluster import task_runner
from annotator.cluster.connection import ClusterUse, connect_to_cluster
from annotator.cluster.task_runner import CALLS_PER_CORE, TaskRunner
from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.networks import configuration, embedding_claim
from annotator.store.runs import runs
from annotator.worker.process import Worker
from annotator.worker.training import cluster_scoring
from annotator.worker.training.cluster_scoring import ClusterScoring
from spmll.ensemble import stacking
from spmll.ensemble.collection_scoring import KnownLabels, score_locally

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install 'multilabel-annotator[cluster]'",
    ),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]


@pytest.fixture(scope="module")
def cluster():
    started = Cluster(cpus=2)
    yield started
    started.end()


@pytest.fixture
def use(cluster, monkeypatch):
    """What this process wants of the cluster; commands that run in it take its signals."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield ClusterUse("ray", "annotator", "")
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.slow
def test_cluster_task_runner_returns_each_result_once_after_kills_and_hangs(cluster, use, monkeypatch, tmp_path):
    monkeypatch.setattr(task_runner, "MIN_STRAGGLER_SECONDS", 1.0)

    def work(folder, number):
        started = folder / f"{number}-{os.getpid()}"
        hangs = number == 9 and not list(folder.glob("9-*"))
        started.touch()
        time.sleep(60 if hangs else 0.1)
        if number == 5:
            raise ValueError("five")
        return 2 * number

    made, done, killed = [], [], 0
    signal.signal(signal.SIGTERM, lambda *_: None)
    handler = signal.getsignal(signal.SIGTERM)
    with connect_to_cluster(use) as ray:
        assert signal.getsignal(signal.SIGTERM) is handler, "Ray has taken over what stops this process"
        calls = TaskRunner(ray, use, work, tmp_path)
        for call in calls.iterate_results(range(24), lambda number, machine: made.append(number) or number):
            assert len(set(made)) - len(done) <= CALLS_PER_CORE * 2, "nothing is made before it can be sent"
            done += [call] if call else []
            if len(done) > 4 * (killed + 1) and killed < 2 and (workers := cluster.list_workers("work")):
                os.kill(workers[0], signal.SIGKILL)
                killed += 1
    assert killed == 2 and sorted(call.key for call in done) == list(range(24))
    assert {call.key: call.result for call in done if call.error is None} == {n: 2 * n for n in range(24) if n != 5}
    assert [(call.key, "five" in str(call.error)) for call in done if call.error] == [(5, True)]
    begun = Counter(int(path.name.partition("-")[0]) for path in tmp_path.iterdir())
    assert sum(begun.values()) <= 24 + killed + 1, "only what was killed or hung was begun again"


@pytest.mark.slow
def test_cluster_scores_equal_local_scores_after_kills_and_failed_images_run_locally(cluster, use, tmp_path):
    features, home = (
        np.random.default_rng(0).random((9 * cluster_scoring.IMAGES_PER_CALL + 100, 2)).astype(np.float16),
        os.getpid(),
    )

    class Slow:
        """Not of a module that the machines have: it travels as what it is."""

        def probabilities(self, features, region_codes, known):
            time.sleep(0.02)
            if os.getpid() != home and (features[0] == broken).all():
                raise ValueError("no such image")
            return np.sqrt(features.astype(np.float32))

    broken = features[3 * cluster_scoring.IMAGES_PER_CALL]
    given = (Slow(), features, None, lambda rows: KnownLabels.empty(2), 2)
    killed = []

    def tell():
        if not killed and (workers := cluster.list_workers("score_chunk")):
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])

    with connect_to_cluster(use) as ray:
        there = ClusterScoring(ray, use, tmp_path)
        np.testing.assert_array_equal(there(*given, tell), score_locally(*given, lambda: None))
    assert killed and len(there.problem_sentences) == 2
    assert "could not score images" in there.problem_sentences[0] and "no such image" in there.problem_sentences[0]
    assert (
        f"{cluster_scoring.IMAGES_PER_CALL:,} of {len(features):,} images were scored here"
        in there.problem_sentences[1]
    )


@pytest.mark.slow
def test_training_scored_on_the_cluster_matches_local_probabilities(cluster, use, tmp_path, monkeypatch):
    # else so few images keep the scores that they were stacked by
    monkeypatch.setattr(stacking, "MAX_STACKED_CELLS", 2000)
    monkeypatch.setattr(cluster_scoring, "IMAGES_PER_CALL", 2 * cluster_scoring.IMAGES_PER_BLOCK)
    read_there = ClusterScoring.__call__

    def both(self, *given):
        by_name = read_there(self, *given)
        with monkeypatch.context() as patch:
            # no machine sees the files: they are sent
            patch.setattr(cluster_scoring._Images, "choose_probe_files", lambda images: [])
            np.testing.assert_array_equal(read_there(self, *given), by_name)
        return by_name

    monkeypatch.setattr(ClusterScoring, "__call__", both)
    probabilities = []
    (tmp_path / "here").mkdir()
    size = steps.Size(tmp_path / "here", 2500, 5, 1)
    for step in (steps.rows, steps.embed, steps.answers):
        step(size, lambda: None)
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    for place, words in (("here", []), ("there", ["--on", cluster.client])):
        db = Database(tmp_path / place / "project")
        ended = CliRunner().invoke(app, ["train", str(db.paths.project), *words], catch_exceptions=False)
        assert ended.exit_code == 0 and "note:" not in ended.stderr
        run = runs.load_current_run(db)
        assert run is not None
        probabilities.append(np.load(db.paths.run(run.id) / "probabilities.npy"))
    np.testing.assert_allclose(*probabilities, atol=1e-3)
    worker = Worker(db.paths.project)
    with pytest.raises(AlreadyRunning, match="end the app first, or leave out --on"):
        CliRunner().invoke(app, ["train", str(db.paths.project), "--on", "ray"], catch_exceptions=False)
    worker.close()


@pytest.mark.slow
@pytest.mark.parametrize("methods", ["an", pytest.param("an,auto", marks=pytest.mark.slow)])
def test_method_comparison_on_the_cluster_equals_the_local_comparison(methods, cluster, use, tmp_path, monkeypatch):
    rows = ["image,labels"]
    for number in range(24):
        draw(tmp_path / "images" / f"{number:02}.png", seed=number)
        rows.append(f"{number:02}.png,{'|'.join('abc'[: 1 + number % 3])}")
    (tmp_path / "truth.csv").write_text("\n".join(rows) + "\n")
    line = ["bench", "methods", "--images", tmp_path / "images", "--truth", tmp_path / "truth.csv", "--seeds", "2",
            "--share", "0.6", "--methods", methods, "--trials", "2", "--epochs", "2",
            "--backbone", "efficientnet_lite0", "--json"]  # fmt: skip
    tables = []
    for place, words in (("here", []), ("there", ["--on", "ray"])):
        work = tmp_path / place
        if tables:  # the same features
            work.mkdir()
            for path in (tmp_path / "here").glob("features*"):
                path.rename(work / path.name)
        ended = CliRunner().invoke(app, [str(word) for word in [*line, "--work", work, *words]], catch_exceptions=False)
        tables.append(json.loads(ended.stdout.splitlines()[-1])["rows"])
        assert ("[4/4]" if methods == "an" else "[6/6]") in ended.stderr
        for row in tables[-1]:
            del row["seconds"], row["seconds_std"]
    assert tables[0] == tables[1]


@pytest.mark.parametrize("command", [["train"], ["bench", "methods", "--seeds", "1", "--work"]])
def test_cluster_option_without_ray_states_what_to_install(command, tmp_path, monkeypatch, photos):
    words = [str(tmp_path / "work")]
    if command == ["train"]:
        set_up_project(tmp_path / "work", images_folder=photos)
        words += ["--method", "em"]
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(AnnotatorError, match=r"pip install 'multilabel-annotator\[cluster\]'"):
        CliRunner().invoke(app, [*command, *words, "--on", "ray"], catch_exceptions=False)
    assert command != ["train"] or configuration.get_method(Database(tmp_path / "work")) == "auto", "nothing is changed"


def test_finetune_comparison_refuses_the_cluster_option(tmp_path):
    line = ["bench", "methods", "--regime", "finetune", "--work", str(tmp_path), "--on", "ray"]
    with pytest.raises(AnnotatorError, match="--on is for --regime linear"):
        CliRunner().invoke(app, line, catch_exceptions=False)


@pytest.mark.slow
def test_embed_command_names_cluster_machines_with_a_broken_installation(db, annotator, tmp_path, monkeypatch):
    (tmp_path / "broken" / "annotator").mkdir(parents=True)
    (tmp_path / "broken" / "annotator" / "__init__.py").write_text("import no_such_module\n")
    (tmp_path / "broken" / "spmll").symlink_to(Path(spmll.__file__).parent)  # which the network is made of
    only = Cluster(path=tmp_path / "broken")
    try:
        for name, value in only.environment.items():
            monkeypatch.setenv(name, value)
        err = annotator("embed", db.paths.project, "--on", only.client, code=1).stderr
    finally:
        only.end()
    assert "has no complete annotator" in err and "no_such_module" in err
    assert embedding_claim.get_running(db) is None

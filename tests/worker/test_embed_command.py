"""`annotator embed` without a cluster: what is lost and found again, who may embed, what is said when it cannot."""

import json
import os
import socket
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from annotator.cluster import connection
from annotator.cluster.connection import ClusterUse
from annotator.cluster.package_versions import get_package_versions
from annotator.errors import AlreadyRunning
from annotator.store.database.process_claims import CLAIM_TIMEOUT_SECONDS
from annotator.store.features.feature_cache import open_features
from annotator.store.features.project_contents import ProjectContents
from annotator.store.features.shards import CodedRegions, list_shards, read_shard
from annotator.store.features.stored_basis import StoredBasis, publish_basis
from annotator.store.images.file_addresses import load_image_files, open_image_file
from annotator.store.locations.location import Location
from annotator.store.networks import embedding_claim
from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.store.pictures.files import UNREAD_STATE
from annotator.worker.embedding.chunks import MAX_LOSSES, ChunkQueue
from annotator.worker.embedding.cluster_workers import WorkerShare, split_machine
from annotator.worker.embedding.node_worker import NodeWorker, WorkerJob
from annotator.worker.embedding.result_writer import EmbeddingResult, ResultWriter
from annotator.worker.features.image_embedder import ImageEmbedder
from annotator.worker.features.worker_context import WorkerContext
from spmll.backbones.batch_size import find_fastest_batch_size

BACKBONE = "efficientnet_lite0"


@given(
    count=st.integers(1, 60),
    deadly=st.sets(st.integers(0, 59), max_size=3),
    sizes=st.lists(st.integers(1, 40), min_size=1),
    random_kills=st.lists(st.booleans(), max_size=30),
)
def test_embedding_queue_isolates_images_that_kill_workers_and_hands_out_all_others_once(
    count, deadly, sizes, random_kills
):
    chunks, done, given_up, turn = ChunkQueue(np.arange(count)), [], [], 0
    kills = iter(random_kills)
    while (chunk := chunks.pop(sizes[turn % len(sizes)])) is not None:
        turn += 1
        if deadly & set(chunk.image_ids.tolist()) or next(kills, False):
            given_up += chunks.requeue_lost(chunk)
        else:
            done += chunk.image_ids.tolist()
        assert turn < 2000
    assert sorted(done + given_up) == list(range(count))
    assert deadly & set(range(count)) <= set(given_up)
    if sum(random_kills) < MAX_LOSSES:
        assert set(given_up) == deadly & set(range(count)), "a worker or two that were killed give up no image"


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ({}, []),
        ({"CPU": 0, "GPU": 1}, []),
        ({"CPU": 1}, [WorkerShare(1, 0)]),
        ({"CPU": 0.5}, [WorkerShare(0.5, 0)]),
        ({"CPU": 6}, [WorkerShare(3, 0)] * 2),
        ({"CPU": 9}, [WorkerShare(3, 0)] * 3),
        ({"CPU": 16, "GPU": 1}, [WorkerShare(8, 0.5)] * 2),
        ({"CPU": 8, "GPU": 4}, [WorkerShare(2, 1)] * 4),
        ({"CPU": 128, "GPU": 2}, [WorkerShare(8, 0.25)] * 8),
        ({"CPU": 1, "GPU": 4}, [WorkerShare(0.25, 1)] * 4),
    ],
)
def test_workers_per_machine_match_its_cores_and_gpus(resources, wanted):
    assert split_machine(resources) == wanted
    assert sum(share.cpus for share in wanted) <= resources.get("CPU", 0)
    assert sum(share.gpus for share in wanted) <= resources.get("GPU", 0)


def test_gpu_batch_size_grows_while_faster_and_stays_within_memory():
    speeds = {32: 100.0, 64: 190.0, 128: 300.0, 256: 305.0, 512: 900.0}
    assert find_fastest_batch_size(lambda images: images / speeds[images]) == 128

    def full(images):
        if images > 64:
            raise torch.OutOfMemoryError
        return 1.0

    assert find_fastest_batch_size(full) == 64


@pytest.mark.slow
def test_embed_command_analyzes_the_same_images_as_the_worker(annotator, db, photos):
    db.set_setting("backbone", BACKBONE)
    (photos / "03.jpg").write_bytes(b"")
    out = json.loads(annotator("embed", db.paths.project, "--json").stdout)
    assert (out["images"], out["failed"], out["remaining"]) == (23, 1, 0)
    assert out["workers"] >= 1 and out["images_a_second"] > 0
    cache = open_features(db, BACKBONE)
    assert len(cache.image_ids) == 23 and db.value("SELECT count(*) FROM image WHERE problem != ''") == 1
    assert ImageEmbedder(WorkerContext(db), lambda *_: None).find_missing() == []
    assert "Analyzed 0 images" in annotator("embed", db.paths.project).stdout


def test_every_embedding_shard_stores_the_content_hashes_of_its_images(db):
    folder = db.paths.features("x")
    basis = publish_basis(folder, StoredBasis(np.zeros(4), np.eye(4)[:, :3], np.ones(3)))
    results = ResultWriter(db, open_features(db, "x"))
    results.add(EmbeddingResult(np.array([3, 1]), np.ones((2, 4), np.float16), np.ones((2, 9, 4), np.float16)))
    codes = CodedRegions(np.ones((1, 9, 3), np.int8), np.ones((1, 9), np.float16), basis.name)
    results.add(EmbeddingResult(np.array([2]), np.ones((1, 4), np.float16), codes))
    results.write()
    shards = [read_shard(path) for path in list_shards(folder)]
    assert len(shards) == 2 and sorted(open_features(db, "x").image_ids) == [1, 2, 3]
    for shard in shards:
        assert np.array_equal(shard.contents, ProjectContents(db).load_hashes(shard.image_ids))


def test_worker_skips_embedding_while_another_process_embeds(db, annotator):
    claim = embedding_claim.claim(db, "ray")
    embedding_claim.report(db, replace(claim, done=6, of=24, images_a_second=2.0, workers=3))
    features = ImageEmbedder(WorkerContext(db), lambda *_: pytest.fail("the worker embeds"))
    features.embed_missing()
    assert "being embedded already: on ray" in annotator("embed", db.paths.project, code=1).stderr
    assert "on ray, 6 of 24 images; 3 workers; 2 images a second; about 9 seconds left" in (
        annotator("status", db.paths.project).stdout.replace("\n", " ")
    )
    embedding_claim.release(db)
    assert embedding_claim.get_running(db) is None


@pytest.mark.parametrize("ended", ["killed", "silent"])
def test_embedding_claim_is_released_when_its_process_is_killed_or_silent(db, ended):
    claim = embedding_claim.claim(db, "local")
    with pytest.raises(AlreadyRunning):
        embedding_claim.claim(db, "local")
    if ended == "killed":
        gone = replace(claim, pid=2**22 + 5, process="")
    else:
        silent_at = time.time() - 2 * CLAIM_TIMEOUT_SECONDS
        gone = replace(claim, host="elsewhere", process="", heartbeat_at=silent_at)
    embedding_claim.report(db, gone)
    assert embedding_claim.claim(db, "ray").on == "ray"


@pytest.mark.parametrize("value", [None, 3, {"on": "ray"}, {"nodes": 1}])
def test_unreadable_embedding_claim_is_ignored(db, value):
    db.set_setting(embedding_claim.STATE_SETTING, value)
    assert embedding_claim.get_running(db) is None


@pytest.mark.slow
def test_embed_reports_invalid_or_unreachable_cluster_addresses(annotator, db, monkeypatch):
    project = db.paths.project
    for place in ("cluster", "ray://", "http://head:10001", "ray://head:none", "ray://head:10001/path"):
        assert "there is no such place" in annotator("embed", project, "--on", place, code=1).stderr
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        monkeypatch.setitem(sys.modules, "ray", None)
        assert (
            "pip install 'multilabel-annotator[cluster]'" in annotator("embed", project, "--on", "ray", code=1).stderr
        )
        with pytest.raises(Exception, match="cannot be reached"):
            connection._check_head(f"ray://127.0.0.1:{port}")
        with pytest.raises(Exception, match="cannot be reached"):
            connection._check_head(f"127.0.0.1:{port}")
    assert embedding_claim.get_running(db) is None and "RAY_AUTH_TOKEN" not in os.environ


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("Version mismatch: The cluster was started with:\n  Ray: 2.59.0\n  Python: 3.12.1", "has other versions"),
        ("Python minor versions differ between client and server: they must match", "has other versions"),
        ("[Errno 28] No space left on device", "is full"),
        ("ray client connection timeout", "RAY_AUTH_MODE=token"),
        ("Authentication required", "RAY_AUTH_MODE=token"),
        ("something else\nand more", "cannot be used: something else."),
    ],
)
def test_ray_errors_are_translated_into_readable_messages(error, words):
    assert words in str(connection._translate_error("ray://head:10001", RuntimeError(error), ClusterUse("", "", "")))


@pytest.mark.slow
def test_embed_releases_its_claim_when_embeddings_cannot_be_written(annotator, db):
    folder = db.paths.features(BACKBONE)
    db.set_setting("backbone", BACKBONE)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    assert "could not be written" in annotator("embed", db.paths.project, code=1).stderr
    assert embedding_claim.get_running(db) is None


@pytest.mark.slow
def test_cluster_node_without_the_image_files_gets_content_and_other_versions_are_refused(db, photos):
    from spmll.backbones.pretrained import load_pretrained

    of_all = load_image_files(db, [1, 2, 99])
    assert open_image_file(of_all[0]).is_file() and of_all[2].places == ()
    elsewhere = [
        files._replace(places=(Location("/no/such/folder", "a.jpg", UNREAD_STATE, ""),)) for files in of_all[:2]
    ]
    probes = {str(photos): of_all[:1], "/no/such/folder": elsewhere[:1]}
    work = WorkerJob(
        BACKBONE, lambda: load_pretrained(BACKBONE), get_package_versions(), 1, False, probes, NO_BAND_CHOICES
    )
    other = NodeWorker().start(
        WorkerJob(BACKBONE, pytest.fail, get_package_versions() | {"torch": "1.0"}, 1, False, {}, NO_BAND_CHOICES)
    )
    assert other.refusal == f"has torch {get_package_versions()['torch']} instead of 1.0"
    member = NodeWorker()
    ready = member.start(work)
    assert (ready.refusal, ready.unreadable_folders) == ("", frozenset({"/no/such/folder"}))
    content = open_image_file(of_all[1]).read_bytes()
    embedded = member.embed(elsewhere, {2: content})
    assert embedded.image_ids.tolist() == [2] and embedded.features.shape == (1, 1280)
    assert embedded.regions.shape == (1, 9, 1280) and embedded.failures[0][0] == 1


def test_images_of_a_damaged_shard_are_embedded_again(annotator, db):
    db.set_setting("backbone", BACKBONE)
    annotator("embed", db.paths.project)
    (shard,) = list_shards(db.paths.features(BACKBONE))
    content = bytearray(shard.read_bytes())
    content[-100] ^= 1
    shard.write_bytes(content)
    assert json.loads(annotator("embed", db.paths.project, "--json").stdout)["images"] == 24
    assert json.loads(annotator("embed", db.paths.project, "--json").stdout)["images"] == 0

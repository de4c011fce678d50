"""Images in a bucket are registered, shown and embedded where they lie: against an S3 server of its own."""

import gzip
import hashlib
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import numpy as np
import pytest
from harness.remote_images import picture, server, shown, use_server

from annotator.errors import AnnotatorError, RequestSkipped, StorageTimeout
from annotator.exchange.imports.import_messages import describe_registration
from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.images import address_cache, browser_copies, images
from annotator.store.images.file_addresses import load_image_files
from annotator.store.locations import listing, remote_files, staged_listing
from annotator.store.locations.addresses import Address
from annotator.store.locations.file_cache import FileCache
from annotator.store.locations.remote_files import UNREADABLE_NOW_PROBLEM, RemoteFiles, to_folder_address
from annotator.store.pictures.bands import NO_BAND_CHOICES

__all__ = ["server"]  # a fixture

pytest.importorskip("moto.server")
pytest.importorskip("s3fs")

BIRDS = "s3://photos/birds"
NAMES = ["a/1.jpg", "a/2.jpg", "b.jpg", "b/1.png", "z.jpg"]


@pytest.fixture
def bucket(server, monkeypatch):
    """A new bucket with five images below birds/, of which two have a SHA-256 in the store."""
    import boto3

    use_server(monkeypatch, server)
    monkeypatch.setattr(remote_files, "_files_by_address", {})
    client = boto3.client("s3")
    client.create_bucket(Bucket="photos")
    for number, name in enumerate(NAMES):
        checksum = {"ChecksumAlgorithm": "SHA256"} if number in (0, 3) else {}
        body = picture(number, "PNG" if name.endswith("png") else "JPEG")
        client.put_object(Bucket="photos", Key=f"birds/{name}", Body=body, **checksum)
    client.put_object(Bucket="photos", Key="birds/notes.txt", Body=b"x")
    yield client
    for row in client.list_objects_v2(Bucket="photos").get("Contents", ()):
        client.delete_object(Bucket="photos", Key=row["Key"])
    client.delete_bucket(Bucket="photos")


@pytest.fixture
def birds(bucket, tmp_path):
    set_up_project(tmp_path / "p", images_folder=Address.parse(BIRDS), in_place=True)
    return Database(tmp_path / "p")


def refusal(db, image_id):
    """The kind of error with which an image is refused."""
    with pytest.raises(AnnotatorError) as problem:
        browser_copies.fetch_original(db, image_id)
    return problem.type


pytestmark = pytest.mark.process


def test_bucket_images_are_registered_by_checksum_and_fetched_only_when_shown(bucket, annotator, tmp_path):
    said = annotator("init", "p", "--images", BIRDS, "--in-place", "--cache-gb", "0.5").stdout
    assert "5 images added" in said
    db = Database(tmp_path / "p")
    contents = {
        row["name"]: bucket.get_object(Bucket="photos", Key=f"birds/{row['name']}")["Body"].read()
        for row in db.rows("SELECT name FROM image")
    }
    assert {row["name"]: row["sha256"] for row in db.rows("SELECT name, sha256 FROM image")} == {
        name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
    }
    # Of two only the store's checksum was read.
    assert db.tuples("SELECT name FROM image WHERE width = 0 ORDER BY name") == [("a/1.jpg",), ("b/1.png",)]
    assert not (tmp_path / "p/fetched").exists()
    first = images.find_image(db, "a/1.jpg").id
    assert shown(db, first).read_bytes() == contents["a/1.jpg"]  # small, and browsers show it is
    assert images.load_images(db, [first])[first].width == 96
    assert address_cache.get_cache_gb(db) == 0.5
    assert address_cache.get_cache(db).measure_usage() == (1, len(contents["a/1.jpg"]))
    assert "0 images added, 5 already there" in annotator("import", "p", BIRDS, "--in-place").stdout
    secrets = ("s3://key:secret@photos/birds", f"{BIRDS}?token=secret")
    for wrong in (*secrets, "file:///etc", "photos", f"{BIRDS}/b.jpg", "s3://no-such-bucket/birds"):
        said = annotator("init", "other", "--images", wrong, "--in-place", code=1)
        assert "secret" not in said.stderr and not (tmp_path / "other/project.db").exists()


def test_import_in_place_reports_json_and_refuses_label_options(birds, bucket, annotator):
    bucket.put_object(Bucket="photos", Key="birds/new.jpg", Body=picture(70))
    bucket.put_object(Bucket="photos", Key="birds/broken.jpg", Body=b"none")
    bucket.delete_object(Bucket="photos", Key="birds/z.jpg")
    said = json.loads(annotator("import", birds.paths.project, BIRDS, "--in-place", "--json").stdout)["registered"]
    assert (said["added"], said["known"], said["passed_over"]) == (1, 4, 1)
    assert [bad["path"] for bad in said["bad"]] == ["broken.jpg"]
    assert [bad["path"] for bad in said["missing"]] == ["z.jpg"]
    for words in (
        "--format csv",
        "--images .",
        "--exhaustive",
        "--class-map x.csv",
        "--conflicts replace",
        "--dry-run",
    ):
        refused = annotator("import", birds.paths.project, BIRDS, "--in-place", *words.split(), code=1).stderr
        assert "only adds images" in refused and words.split()[0] in refused and "Give only one" in refused


def test_embedding_bucket_images_leaves_the_local_file_cache_empty(birds):
    from annotator.worker.features.embed import embed_images
    from spmll.backbones.frozen_backbone import load_backbone

    ids = [images.find_image(birds, name).id for name in ("a/1.jpg", "b.jpg")]
    sources = [images.find_image_source(birds, image_id) for image_id in ids]
    (batch,) = embed_images(sources, load_backbone("efficientnet_lite0"), bands=NO_BAND_CHOICES)
    assert batch.indices == [0, 1] and not batch.failures and len(batch.features) == 2
    assert [facts.width for _, facts in batch.facts] == [96, 96]
    assert address_cache.get_cache(birds).measure_usage() == (0, 0)


def test_embed_and_cluster_worker_read_images_directly_from_the_bucket(birds, annotator):
    from annotator.cluster.package_versions import get_package_versions
    from annotator.worker.embedding.node_worker import NodeWorker, WorkerJob
    from spmll.backbones.pretrained import load_pretrained

    birds.set_setting("backbone", "efficientnet_lite0")
    files = load_image_files(birds, birds.integer_rows("SELECT id FROM image ORDER BY id")[:, 0].tolist())
    probes = {BIRDS: files[:1], "s3://no-such-bucket": [files[0]._replace(places=(_elsewhere(files[0]),))]}
    member = NodeWorker()
    work = WorkerJob(
        "efficientnet_lite0",
        lambda: load_pretrained("efficientnet_lite0"),
        get_package_versions(),
        1,
        False,
        probes,
        NO_BAND_CHOICES,
    )
    assert member.start(work).unreadable_folders == {"s3://no-such-bucket"}
    embedded = member.embed(files, {})
    assert len(embedded.features) == len(embedded.facts) == 5 and not embedded.failures
    said = json.loads(annotator("embed", birds.paths.project, "--json").stdout)
    assert (said["images"], said["failed"], said["unanswered"]) == (5, 0, 0)
    assert not birds.value("SELECT count(*) FROM image WHERE width = 0")
    cache = open_features(birds, "efficientnet_lite0")
    assert np.allclose(cache.features[np.argsort(cache.image_ids)], embedded.features, atol=2e-3)
    assert address_cache.get_cache(birds).measure_usage() == (0, 0)


@pytest.mark.slow
def test_embed_retries_an_unreachable_bucket_and_marks_no_image_missing(birds, monkeypatch):
    from annotator.worker.embedding import embed_now

    birds.set_setting("backbone", "efficientnet_lite0")
    address = os.environ["AWS_ENDPOINT_URL"]
    titles, answers_from = [], [0]

    def show(title, done, of):
        titles.append(title)
        if sum("tried again in 1 second" in shown for shown in titles) == answers_from[0] > 0:
            os.environ["AWS_ENDPOINT_URL"] = address
            remote_files._files_by_address.clear()

    with closing(socket.socket()) as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed.getsockname()[1]}")
        for name, value in (("MAX_TRIES", 1), ("AWAY_SECONDS", 0.01), ("_files_by_address", {})):
            monkeypatch.setattr(remote_files, name, value)
        monkeypatch.setattr(embed_now, "ADDRESS_RETRY_SECONDS", 1)
        monkeypatch.setattr(embed_now, "MAX_TRIES", 2)
        done = embed_now.embed_now(birds.paths.project, on_step=show)
        assert (done.images, done.failed, done.remaining, done.unanswered) == (0, 0, 5, 5)
        assert sum("5 images cannot be read now, tried again in 1 second" in title for title in titles) == 1
        assert not images.load_missing_reasons(birds)
        titles.clear()
        answers_from[0] = 1
        done = embed_now.embed_now(birds.paths.project, on_step=show)
    assert (done.images, done.remaining, done.unanswered) == (5, 0, 0)


def _elsewhere(files):
    return files.places[0]._replace(folder="s3://no-such-bucket")


KILLED = """
import os, signal, sys
from pathlib import Path
from annotator.exchange.project_setup import set_up_project
from annotator.store.images import address_registration
from annotator.store.locations import listing, staged_listing
from annotator.store.locations.addresses import Address
listing.PAGE_ENTRIES = staged_listing.NAMES_PER_TRANSACTION = address_registration.FILES_PER_TRANSACTION = 2
def show(what, done, of):
    if what == sys.argv[2] and done >= 2:
        os.kill(os.getpid(), signal.SIGKILL)
set_up_project(Path(sys.argv[1]), images_folder=Address.parse(sys.argv[3]), in_place=True, fetching=show)
"""


@pytest.mark.parametrize("step", ["Listing", "Registering"])
def test_bucket_registration_resumes_after_a_kill_at_any_step(step, bucket, tmp_path, monkeypatch):
    words = [sys.executable, "-P", "-c", KILLED, str(tmp_path / "p"), step, BIRDS]
    ended = subprocess.run(words, env=os.environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not (tmp_path / "p/project.db").exists()
    calls, real = [], listing._list_s3_keys

    def keys(files, base, after):
        calls.append(after)
        return real(files, base, after)

    monkeypatch.setattr(listing, "_list_s3_keys", keys)
    read, real_read = [], RemoteFiles._call
    monkeypatch.setattr(RemoteFiles, "_call", lambda self, *v, **o: (read.append(v[1]), real_read(self, *v, **o))[1])
    done = set_up_project(tmp_path / "p", images_folder=Address.parse(BIRDS), in_place=True).registered
    names = [row[0] for row in Database(tmp_path / "p").tuples("SELECT name FROM image ORDER BY name")]
    assert names == NAMES
    if step == "Listing":
        assert calls == ["a/2.jpg"] and done.added == 5
    else:
        assert not calls and done.added == 3 and not {"a/1.jpg", "a/2.jpg"} & set(read)
    assert not [entry.name for entry in (tmp_path / "p").iterdir() if staged_listing.is_listing_file(entry.name)]


def test_changed_object_becomes_a_new_image_and_deleted_object_is_reported_missing(bucket, birds, tmp_path):
    ids = {name: images.find_image(birds, name).id for name in NAMES}
    bucket.put_object(Bucket="photos", Key="birds/b.jpg", Body=picture(50))
    bucket.delete_object(Bucket="photos", Key="birds/z.jpg")
    for name, said in (
        ("b.jpg", "holds another picture now"),
        ("z.jpg", "no file with this picture is there any more"),
    ):
        with pytest.raises(AnnotatorError, match=said):
            shown(birds, ids[name])
        assert said in images.load_missing_reasons(birds)[ids[name]]
    bucket.copy_object(Bucket="photos", Key="birds/moved.jpg", CopySource="photos/birds/a/2.jpg")
    bucket.delete_object(Bucket="photos", Key="birds/a/2.jpg")
    done = set_up_project(tmp_path / "p", images_folder=Address.parse(BIRDS), in_place=True).registered
    assert (done.added, done.moved, done.known) == (1, 1, 2)
    assert images.find_image(birds, "moved.jpg").id == ids["a/2.jpg"]
    assert images.find_image(birds, "b.jpg").id not in ids.values()
    assert set(images.load_missing_reasons(birds)) == {ids["b.jpg"], ids["z.jpg"]}


HOSTILE = {
    "../up.jpg": "",
    "/absolute.jpg": "",
    "twice//slash.jpg": "",
    "a/../../b.jpg": "",
    "pre.jpg": "pre.jpg",
    "pre.jpg/in.jpg": "pre.jpg/in.jpg",
    "b.jpg/": None,
    "bidi\u202egpj.jpg": "bidi\u202egpj.jpg",
    "control\x01.jpg": "control\x01.jpg",
    "back\\xe9.jpg": "back\\x5cxe9.jpg",
    "per%2fcent+ ?#<b>&.jpg": "per%2fcent+ ?#<b>&.jpg",
    "d/" * 480 + "e.jpg": "d/" * 480 + "e.jpg",
    "my-bucket.jpg": "my-bucket.jpg",
}


def test_unusual_bucket_keys_are_registered_by_name_or_reported_as_invalid_paths(bucket, tmp_path, annotator):
    """'' for keys that are kept out, None for what is passed over."""
    contents = {key: picture(number) for number, key in enumerate(HOSTILE, start=100)}
    for key, content in contents.items():
        bucket.put_object(Bucket="photos", Key=f"odd/{key}", Body=content)
    done = set_up_project(tmp_path / "p", images_folder=Address.parse("s3://photos/odd"), in_place=True).registered
    assert {bad.path for bad in done.bad} == {key for key, name in HOSTILE.items() if name == ""}
    assert all("is no path" in bad.reason for bad in done.bad)
    db = Database(tmp_path / "p")
    names = {row[0]: row[1] for row in db.tuples("SELECT name, sha256 FROM image")}
    assert names == {name: hashlib.sha256(contents[key]).hexdigest() for key, name in HOSTILE.items() if name}
    for name in names:
        image_id = db.value("SELECT id FROM image WHERE name = ?", [name])
        assert shown(db, image_id).read_bytes() in contents.values()
    annotator("export", "p", tmp_path / "out", "--format", "webdataset", "--images", "copy")
    bucket.delete_object(Bucket="photos", Key="odd/my-bucket.jpg")
    with pytest.raises(AnnotatorError, match="no file with this picture is there any more"):
        remote_files.get_remote_files(Address.parse("s3://photos/odd")).read("my-bucket.jpg")


def test_bucket_registration_reports_an_unreadable_object_and_adds_the_others(bucket, tmp_path):
    bucket.put_object(Bucket="photos", Key="birds/cold.jpg", Body=picture(60), StorageClass="GLACIER")
    done = set_up_project(tmp_path / "p", images_folder=Address.parse(BIRDS), in_place=True).registered
    assert done.added == 5 and [bad.path for bad in done.bad] == ["cold.jpg"]
    assert done.bad[0].reason.startswith(UNREADABLE_NOW_PROBLEM) and "storage class" in done.bad[0].reason
    again = set_up_project(tmp_path / "p", images_folder=Address.parse(BIRDS), in_place=True).registered
    assert again.known == 5 and len(again.bad) == 1 and again.passed_over == 1
    bucket.put_object(Bucket="photos", Key="birds/cold.jpg", Body=picture(60))
    assert set_up_project(tmp_path / "p", images_folder=Address.parse(BIRDS), in_place=True).registered.added == 1


def test_bucket_registration_resumed_with_an_old_object_listing_reports_the_listing_time(bucket, tmp_path):
    def kill(what, done, of):
        if what == "Registering" and of:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        set_up_project(tmp_path / "p", images_folder=Address.parse(BIRDS), in_place=True, fetching=kill)
    bucket.put_object(Bucket="photos", Key="birds/new.jpg", Body=picture(61))
    done = set_up_project(tmp_path / "p", images_folder=Address.parse(BIRDS), in_place=True).registered
    assert done.added == 5 and "as listed at 20" in describe_registration(done)
    done = set_up_project(tmp_path / "p", images_folder=Address.parse(BIRDS), in_place=True).registered
    assert (
        done.added == 1
        and describe_registration(done) == "1 image added, 5 already there, 0 files skipped, 1 other file"
    )


BOMB = gzip.compress(bytes(64 << 20))


class Hostile(http.server.BaseHTTPRequestHandler):
    """A server, of S3 or the web, that does not send what it stated."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name, sent = self.path.rsplit("/", 1)[-1], picture(1)
        if name == "private.jpg":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest/x.jpg")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        if name == "bomb.jpg":
            sent = BOMB
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", {"endless.jpg": 1 << 40, "cut.jpg": len(sent) + 9}.get(name, len(sent)))
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):
            while self.wfile.write(sent) and name == "endless.jpg":
                pass

    def log_message(self, *values):
        pass


@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_remote_image_read_refuses_content_of_an_unexpected_size_in_bounded_memory(scheme, monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    place = f"http://127.0.0.1:{server.server_port}"
    for name, value in (("ENDPOINT_URL", place), ("ACCESS_KEY_ID", "k"), ("SECRET_ACCESS_KEY", "very-secret")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setattr(remote_files, "MAX_UNSTATED_BYTES", 1 << 20)
    size = len(picture(1))
    try:
        hostile = RemoteFiles(Address.parse("s3://photos/birds" if scheme == "s3" else f"{place}/birds"))
        assert hostile.read("good.jpg", size) == hostile.read("good.jpg") == picture(1)
        for name in ("endless.jpg", "cut.jpg", "bomb.jpg", "private.jpg"):
            for stated in (size, size + 1, size - 1, -1):
                if (scheme, name, stated) == ("s3", "bomb.jpg", -1):
                    continue  # nothing unpacks it there
                tracemalloc.start()
                with pytest.raises(AnnotatorError) as problem:
                    hostile.read(name, stated)
                most = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                assert most < 16 << 20, name
                assert "very-secret" not in str(problem.value)
        with pytest.raises(AnnotatorError, match="holds another picture now"):
            hostile.read("good.jpg", size - 1)
    finally:
        server.shutdown()
        server.server_close()


def test_endless_bucket_listing_raises_a_timeout():
    class Files:
        def call_s3(self, *values, **options):
            token = str(int(options.get("ContinuationToken", 0)) + 1)
            return {"Contents": [{"Key": "x/a.jpg"}, {"Key": "y"}], "IsTruncated": True, "NextContinuationToken": token}

    with pytest.raises(StorageTimeout, match="ends its listing after"):
        list(listing._list_s3_keys(Files(), "photos/x", ""))


class Hanging(http.server.BaseHTTPRequestHandler):
    """Accepts what is sent, and does not answer."""

    def do_GET(self):
        self.server.asked.append(self.path)
        self.server.end.wait(20)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *values):
        pass


def test_hanging_bucket_marks_its_images_missing_until_it_responds_again(birds, server, bucket, monkeypatch, tmp_path):
    (tmp_path / "local").mkdir()
    (tmp_path / "local/here.jpg").write_bytes(picture(77))
    set_up_project(tmp_path / "p", images_folder=tmp_path / "local")
    ids = [images.find_image(birds, name).id for name in ("b.jpg", "z.jpg", "a/2.jpg")]
    here = images.find_image(birds, "here.jpg").id
    hanging = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hanging)
    hanging.asked, hanging.end, hanging.daemon_threads = [], threading.Event(), True
    threading.Thread(target=hanging.serve_forever, args=(0.02,), daemon=True).start()
    try:
        monkeypatch.setattr(remote_files, "READ_TIMEOUT_SECONDS", 0.3)
        monkeypatch.setattr(remote_files, "AWAY_SECONDS", 600)
        monkeypatch.setattr(remote_files, "_files_by_address", {})
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{hanging.server_port}")
        for image_id in ids:
            with pytest.raises(StorageTimeout, match=UNREADABLE_NOW_PROBLEM):
                shown(birds, image_id)
        assert len(hanging.asked) <= 2  # the third was not asked for
        remote_files.get_remote_files(Address.parse(BIRDS))._away_until, asked = 0.0, len(hanging.asked)
        with ThreadPoolExecutor(8) as pool:  # after a while one of them asks again, and the others do not
            answers = list(pool.map(lambda _: refusal(birds, ids[2]), range(8)))
        assert len(hanging.asked) == asked + 1 and answers.count(RequestSkipped) == 7, answers
        images.mark_problem(birds, ids[2], "")
        assert shown(birds, here).exists()  # others go on
        assert all(note.startswith(UNREADABLE_NOW_PROBLEM) for note in images.load_missing_reasons(birds).values())
        assert sorted(images.load_missing_reasons(birds)) == sorted(ids[:2])  # nor has it a note of that
        assert images.recheck_addresses(birds) == 0
    finally:
        hanging.end.set()
        hanging.shutdown()
        hanging.server_close()
    monkeypatch.setattr(remote_files, "READ_TIMEOUT_SECONDS", 10.0)
    monkeypatch.setattr(remote_files, "_files_by_address", {})
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    assert images.recheck_addresses(birds) == 2
    assert not images.load_missing_reasons(birds)
    assert shown(birds, ids[0]).exists()


def kept_name(number: int) -> str:
    """A name as files of the cache have it."""
    return f"{number:064}"


def test_remote_file_cache_stays_within_its_limit_and_evicts_least_recently_used_files(tmp_path):
    cache = FileCache(tmp_path / "fetched", lambda: 1000)
    clock = iter(range(100, 10_000, 100))
    for number in range(8):
        path = cache.add(kept_name(number), bytes(300))
        assert path.stat().st_size == 300
        for name in (kept_name(0),) if number < 5 else ():
            # looked at
            cache._get_connection().execute("UPDATE kept SET used = used + ? WHERE name = ?", [next(clock), name])
        held = sum(file.stat().st_size for file in (tmp_path / "fetched").glob("*/0*"))
        assert held == cache.measure_usage()[1] <= 1000
    assert cache.find(kept_name(7)) and not cache.find(kept_name(1))
    assert cache.find(kept_name(0))
    again = FileCache(tmp_path / "fetched", lambda: 400)  # another process, and a smaller bound
    again.shrink()
    assert again.measure_usage() == (1, 300) and again.find(kept_name(0))
    for index in (b"damaged" * 100, None):
        copy = shutil.copytree(tmp_path / "fetched", tmp_path / f"copy {index is None}")
        for file in copy.glob("index.db*"):
            file.unlink()
        if index:
            (copy / "index.db").write_bytes(index)
        anew = FileCache(copy, lambda: 400)
        assert anew.find(kept_name(0)) is None and anew.add(kept_name(9), bytes(10)) and anew.measure_usage() == (1, 10)


def test_remote_file_cache_deletes_only_its_own_files_and_serves_only_complete_files(tmp_path):
    other = tmp_path / "disk/00/holiday.jpg"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"mine")
    (tmp_path / "fetched").symlink_to(tmp_path / "disk")
    cache = FileCache(tmp_path / "fetched", lambda: 1000)  # without an index: what is its own is dropped
    assert other.read_bytes() == b"mine"
    first = cache.add(kept_name(1), bytes(300))
    # a project of a stranger
    cache._get_connection().execute("INSERT INTO kept VALUES ('../../disk/00/holiday.jpg', 900, 0)")
    cache.add(kept_name(2), bytes(300))
    assert other.exists() and first.exists()
    first.write_bytes(bytes(299))
    assert cache.find(kept_name(1)) is None and cache.find(kept_name(2))
    index = tmp_path / "disk/index.db"
    cache._get_connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    cache._get_connection().close()
    cache = FileCache(tmp_path / "fetched", lambda: 1000)
    index.write_bytes(index.read_bytes()[:4096] + b"damaged" * 4000)
    assert cache.add(kept_name(3), bytes(300)) and cache.measure_usage() == (1, 300) and other.exists()


def test_image_is_read_while_concurrent_reads_evict_it_from_the_cache(birds, monkeypatch):
    monkeypatch.setattr(address_cache, "BYTES_PER_GB", 60_000)  # the cache holds few of them
    ids = [images.find_image(birds, name).id for name in NAMES]
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(
            lambda number: address_cache.fetch_content(birds, ids[number % 5], _place(birds, ids[number % 5])),
            range(200),
        ):
            assert found
    assert not images.load_missing_reasons(birds)


def _place(db, image_id):
    return images.find_remote_location(db, image_id)


PAGE = """
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.pages.images import images_page as one
with show_errors():
    one.page()
"""


def test_images_page_shows_cache_usage_sets_its_limit_and_finds_new_images(birds, bucket, tmp_path):
    from streamlit.testing.v1 import AppTest

    from annotator.ui.access import served_project
    from annotator.ui.pages.images.image_adder import get_image_adder

    served_project.open_project(tmp_path / "p")
    db = served_project.db()
    for name in NAMES:
        browser_copies.fetch_original(db, images.find_image(db, f"{BIRDS}/{name}").id)  # by its whole address
    bucket.put_object(Bucket="photos", Key="birds/new.jpg", Body=picture(90))
    page = AppTest.from_string(PAGE, default_timeout=120)
    page.session_state["name"] = "Ann"
    page.run()
    assert not page.exception and "0.00 GB are used, by 5 files." in [caption.value for caption in page.caption]
    page.number_input(key="cache_gb").set_value(0.2).run()
    assert address_cache.get_cache_gb(db) == 0.2
    next(button for button in page.button if button.label == "Look for changes").click().run()
    get_image_adder(db).wait()
    (outcome,) = get_image_adder(db).progress.outcomes
    assert outcome.registered and outcome.registered.added == 1, outcome.error


def test_folder_url_with_secrets_or_unsupported_scheme_is_refused():
    assert to_folder_address(Address.parse("S3://photos/birds/")).plain == "s3://photos/birds"
    for named in ("s3://k:s@photos/x", "https://h.org/x?sig=1", "simplecache::s3://photos", "memory://x"):
        with pytest.raises(AnnotatorError):
            to_folder_address(Address.parse(named))

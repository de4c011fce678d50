"""The app as a process: what its routes refuse, and that a kill at any moment loses nothing."""

import http.client
import io
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import draw
from harness.person import served_photos
from harness.served import APP, PAGES_ALONE, Served, free_port, until
from PIL import Image

from annotator.exchange.project_setup import set_up_project
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.ui.access.tokens import DAY_SECONDS, VALID_DAYS, Tokens

pytestmark = pytest.mark.process


@pytest.fixture
def served(project, processes) -> Served:
    """An app of its own, to be killed."""
    return Served(project, processes)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Served]:
    """One app for the tests that leave it as it was."""
    folder = tmp_path_factory.mktemp("shared")
    with served_photos(folder, 4, ("fox", "heron", "deer"), size=(96, 72), python=APP) as served:
        yield served


def label(image_id: int, class_id: int = 1, **more) -> dict:
    return {"uuid": str(uuid.uuid4()), "action": "label", "image": image_id, "class": class_id, "state": 1} | more


def test_routes_refuse_missing_forged_and_expired_tokens_and_those_of_other_projects(shared, monkeypatch, tmp_path):
    genuine = Tokens(shared.project / "secret")
    monkeypatch.setattr("annotator.ui.access.tokens.time.time", lambda: 0.0)
    expired = genuine.mint("Ann")
    monkeypatch.undo()
    # Not the last letter of the signature: some of its bits are padding, and the token would stay the same.
    named, signature = shared.token.rsplit(".", 1)
    forged = f"{named}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"
    foreign = Tokens(tmp_path / "secret").mint("Ann")
    for token in ("", "nonsense", forged, foreign, expired):
        for path in ("/api/work", "/api/items", "/api/recent", "/api/decisions"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                shared.post(path, {"decisions": []}, token=token)
            assert refused.value.code == 401, path
        for path in (
            "/api/image/1",
            "/api/thumb/1",
            "/api/heatmap/1/1/1",
            f"/api/script/{token or 'none'}/annotate/annotate.js",
        ):
            assert shared.get(path, token=token)[0] == 401, path
    assert shared.get("/api/image/1")[0] == 200
    assert DAY_SECONDS * VALID_DAYS == 30 * 24 * 3600


def test_server_listens_on_localhost_only(shared):
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in addresses - {"127.0.0.1"}:
        if address.startswith("127."):
            continue
        with socket.socket() as probe:
            probe.settimeout(2)
            assert probe.connect_ex((address, shared.port)) != 0, f"it answers on {address}"
    listening = subprocess.run(["cat", "/proc/net/tcp"], capture_output=True, text=True, check=False).stdout
    rows = [row.split()[1] for row in listening.splitlines()[1:]]
    assert all(row.startswith("0100007F") for row in rows if row.endswith(f":{shared.port:04X}"))


def test_requests_cannot_read_files_outside_the_served_folders(shared):
    outside = ("..%2f..%2fproject.db", "..%2Fsecret", "%2e%2e/secret", "__init__.py", "label.js.bak", "shared.css")
    secret = (shared.project / "secret").read_bytes()
    for name in outside:
        status, body, _ = shared.get(f"/api/script/{shared.token}/{name}")
        # Either refused, or Streamlit's own start page, which it gives for any address it does not know.
        assert status in (400, 404) or b"<!doctype html>" in body.lower()[:200], name
        assert secret not in body
    assert shared.get("/api/image/999")[0] == 409
    assert secret not in shared.get("/api/image/../secret")[1]


def test_bookmarked_autopilot_and_image_urls_redirect_to_their_pages(shared):
    for asked, there in (("/autopilot", "/"), ("/autopilot?a=b%26", "/?a=b%26"), ("/?image=5", "/annotate?image=5")):
        request = urllib.request.Request(shared.address + asked, headers={"cookie": shared.headers["cookie"]})
        with urllib.request.urlopen(request, timeout=120) as answer:
            assert answer.url == shared.address + there


def test_malformed_request_is_refused_and_changes_nothing(shared):
    for body in ({}, {"decisions": 7}, {"decisions": [None, 5, {}]}, {"decisions": [{"uuid": "x"}]}, {"mode": []}):
        for path in ("/api/decisions", "/api/work"):
            try:
                assert "refused" in shared.post(path, body)
            except urllib.error.HTTPError as error:
                assert error.code in (400, 409)
                assert json.loads(error.read())["error"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        shared.post("/api/decisions", {"decisions": [], "padding": "x" * 2_000_000})
    assert refused.value.code == 400
    assert Database(shared.project).value("SELECT count(*) FROM decision") == 0


def test_invalid_decision_does_not_block_valid_ones(shared):
    good = label(1)
    answer = shared.post("/api/decisions", {"decisions": [{"uuid": "u" * 10}, label(999), good]})
    assert answer["saved"] == [good["uuid"]]
    assert len(answer["refused"]) == 2


@pytest.mark.slow
def test_unsupported_image_formats_are_served_as_jpeg_and_large_images_reduced(tmp_path, processes, class_file):
    folder = tmp_path / "odd"
    folder.mkdir()
    Image.new("I;16", (64, 48), 40000).save(folder / "deep.tif")
    Image.new("RGB", (3000, 1000), "teal").save(folder / "wide.png")
    draw(folder / "small.jpg", seed=3)
    set_up_project(tmp_path / "project", images_folder=folder, class_file=class_file)
    served = Served(tmp_path / "project", processes, python=PAGES_ALONE)
    ids = {image.name: image.id for image in images.load_all_images(Database(tmp_path / "project"))}
    for name in ("deep.tif", "wide.png"):
        status, body, headers = served.get(f"/api/image/{ids[name]}")
        assert (status, headers["content-type"]) == (200, "image/jpeg")
        assert headers["x-content-type-options"] == "nosniff"
        path = tmp_path / "shown.jpg"
        path.write_bytes(body)
        assert max(Image.open(path).size) <= 1600
    assert served.get(f"/api/image/{ids['small.jpg']}")[1] == (folder / "small.jpg").read_bytes()


def test_thumbnails_are_created_once_and_the_full_image_is_served_on_request(tmp_path, processes, class_file):
    folder = tmp_path / "photos"
    folder.mkdir()
    Image.new("RGB", (3000, 1000), "teal").save(folder / "wide.png")
    Image.new("I;16", (2000, 400), 40000).save(folder / "deep.tif")
    draw(folder / "small.jpg", seed=3)
    set_up_project(tmp_path / "project", images_folder=folder, class_file=class_file)
    served = Served(tmp_path / "project", processes, python=PAGES_ALONE)
    ids = {image.name: image.id for image in images.load_all_images(Database(tmp_path / "project"))}

    def size(path: str) -> tuple[int, int]:
        status, body, headers = served.get(path)
        assert status == 200 and "immutable" in headers["cache-control"], path
        return Image.open(io.BytesIO(body)).size

    assert size(f"/api/thumb/{ids['wide.png']}") == (320, 107)
    kept = Database(tmp_path / "project").paths.image_copy(ids["wide.png"], "thumb")
    made = kept.stat().st_mtime_ns
    assert size(f"/api/thumb/{ids['wide.png']}") == (320, 107)
    assert kept.stat().st_mtime_ns == made
    assert served.get(f"/api/thumb/{ids['small.jpg']}")[1] == (folder / "small.jpg").read_bytes()
    assert size(f"/api/image/{ids['wide.png']}") == (1600, 533)
    assert served.get(f"/api/image/{ids['wide.png']}", more="&full=1")[1] == (folder / "wide.png").read_bytes()
    status, body, headers = served.get(f"/api/image/{ids['deep.tif']}", more="&full=1")
    assert (status, headers["content-type"], Image.open(io.BytesIO(body)).size) == (200, "image/jpeg", (2000, 400))


def test_thumbnail_created_by_an_older_version_is_served_as_the_display_image(tmp_path, processes, class_file):
    folder = tmp_path / "photos"
    folder.mkdir()
    Image.new("RGB", (3000, 1000), "teal").save(folder / "wide.png")
    set_up_project(tmp_path / "project", images_folder=folder, class_file=class_file)
    (tmp_path / "project" / "thumbs").mkdir()
    older = draw(tmp_path / "project" / "thumbs" / "1.jpg", seed=5)
    assert Served(tmp_path / "project", processes, python=PAGES_ALONE).get("/api/image/1")[1] == older.read_bytes()


@pytest.mark.slow
def test_decision_is_saved_while_missing_thumbnails_are_created(tmp_path, processes, class_file):
    for number in range(48):
        draw(tmp_path / "photos" / f"{number}.jpg", seed=number, size=(1400, 1000))
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos", class_file=class_file)
    served = Served(tmp_path / "project", processes, python=PAGES_ALONE)
    thumbs = []
    askers = [
        threading.Thread(target=lambda n=n: thumbs.append(served.get(f"/api/thumb/{n}")[0]), daemon=True)
        for n in [*range(1, 49), 1, 1, 2]
    ]
    for asker in askers:
        asker.start()
    assert served.post("/api/decisions", {"decisions": [one := label(1)]})["saved"] == [one["uuid"]]
    waiting = sum(asker.is_alive() for asker in askers)
    for asker in askers:
        asker.join(60)
    assert thumbs == [200] * len(askers)
    assert waiting, "the decision was answered before the thumbs were"


def test_image_routes_report_a_file_that_has_changed(tmp_path, processes, class_file):
    draw(tmp_path / "photos" / "one.jpg", seed=1, size=(3000, 2000))
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos", class_file=class_file)
    served = Served(tmp_path / "project", processes, python=PAGES_ALONE)
    (tmp_path / "photos" / "one.jpg").write_bytes(b"\xff\xd8\xff nothing of an image")
    for path in ("/api/thumb/1", "/api/image/1"):
        status, body, _ = served.get(path)
        assert status == 409 and "has changed" in json.loads(body)["error"], path
    assert "has changed" in images.load_missing_images(Database(tmp_path / "project"))[0].reason


def test_grid_is_saved_returned_and_undone_as_one_batch(project, processes):
    served = Served(project, processes, python=PAGES_ALONE)
    grid = {"uuid": "grid-one", "action": "batch", "source": "grid", "run": 3, "milliseconds": 900}
    grid["cells"] = [[1, 1, 1, 0.9], [2, 1, -1, None], [3, 1, 0, 0.5]]
    flag = {"uuid": "flag-one", "action": "flag", "image": 4, "note": " blurred "}
    bad = grid | {"uuid": "grid-bad", "cells": [[5, 1, 1, 0.9], [999, 1, 1, 0.9]]}
    odd = grid | {"uuid": "grid-odd", "cells": [[5, 1]]}
    answer = served.post("/api/decisions", {"decisions": [grid, bad, odd, flag]})
    assert answer["saved"] == ["grid-one", "flag-one"]
    assert "answer 2 of 2" in answer["refused"]["grid-bad"] and "not a decision" in answer["refused"]["grid-odd"]
    first, second = served.post("/api/recent", {})["decisions"]
    assert (first["uuid"], first["action"], first["cells"]) == ("grid-one", "batch", grid["cells"])
    assert (second["uuid"], second["image"], second["note"]) == ("flag-one", 4, "blurred")
    undo = {"uuid": "undo-one", "action": "undo", "undoes": "grid-one:0"}
    assert served.post("/api/decisions", {"decisions": [undo, undo]})["saved"] == ["undo-one", "undo-one"]
    assert [one["uuid"] for one in served.post("/api/recent", {})["decisions"]] == ["flag-one"]
    assert Database(served.project).value("SELECT count(*) FROM label") == 0


def test_serve_refuses_a_port_in_use_and_a_project_that_is_already_served(shared, annotator_process, tmp_path, photos):
    told = annotator_process("serve", shared.project, "--port", free_port(), "--no-browser", code=1).stderr
    assert f"being served already, at http://127.0.0.1:{shared.port}" in told
    set_up_project(tmp_path / "other", images_folder=photos)
    told = annotator_process("serve", tmp_path / "other", "--port", shared.port, "--no-browser", code=1).stderr
    assert f"Port {shared.port}" in told and "--port" in told.splitlines()[-1]


class Person(threading.Thread):
    """Decides without pause, as a browser's queue would: every batch is sent until it is acknowledged."""

    def __init__(self, served: Served, seed: int, number: int):
        super().__init__(daemon=True)
        self.served, self.random, self.number = served, random.Random(seed), number
        self.acknowledged: dict[str, tuple[int, int]] = {}
        self.enough = threading.Event()

    def run(self) -> None:
        while not self.enough.is_set():
            batch = [
                label(self.random.randint(1, 24), self.random.randint(1, 3), state=self.random.choice([1, -1]))
                for _ in range(self.random.randint(1, 5))
            ]
            while not self.enough.is_set():
                try:
                    answer = self.served.post("/api/decisions", {"decisions": batch}, timeout=5)
                except (OSError, http.client.HTTPException):  # refused, or cut off in the middle of the answer
                    self.enough.wait(0.02)
                    continue
                assert not answer["refused"]
                self.acknowledged |= {one["uuid"]: (one["image"], one["class"]) for one in batch}
                break


def test_killing_the_server_loses_and_duplicates_no_acknowledged_decision(served):
    people = [Person(served, seed, seed) for seed in range(3)]
    for person in people:
        person.start()
    for round_ in range(4):
        before = sum(len(person.acknowledged) for person in people)
        wanted = before + 15 * (round_ + 1)
        until(lambda wanted=wanted: sum(len(person.acknowledged) for person in people) > wanted)
        served.kill()
        served.start()
    for person in people:
        person.enough.set()
        person.join(120)
    db = Database(served.project)
    stored = {row["uuid"]: (row["image_id"], row["class_id"]) for row in db.rows("SELECT * FROM decision")}
    assert db.value("SELECT count(*) FROM decision") == len(stored)
    acknowledged = {key: value for person in people for key, value in person.acknowledged.items()}
    assert len(acknowledged) > 150
    assert {key: stored.get(key) for key in acknowledged} == acknowledged
    newest = {}
    for row in db.rows("SELECT * FROM decision ORDER BY id"):
        newest[row["image_id"], row["class_id"]] = row["state"]
    labels = {(row["image_id"], row["class_id"]): row["state"] for row in db.rows("SELECT * FROM label")}
    assert labels == newest


@pytest.mark.slow
def test_worker_ends_with_a_killed_app_and_restarts_with_the_next_start(served):
    db = Database(served.project)
    first = until(lambda: heartbeat.load_worker_state(db).alive and heartbeat.load_worker_state(db).pid)
    served.kill()
    until(lambda: not os.path.exists(f"/proc/{first}"))  # noqa: PTH110 - a process, not a path
    served.start()
    until(lambda: heartbeat.load_worker_state(db).alive and heartbeat.load_worker_state(db).pid != first)


@pytest.mark.slow
def test_killed_worker_is_restarted_and_the_signal_is_reported(served):
    db = Database(served.project)
    first = until(lambda: heartbeat.load_worker_state(db).alive and heartbeat.load_worker_state(db).pid)
    os.kill(first, 9)
    second = until(lambda: heartbeat.load_worker_state(db).alive and heartbeat.load_worker_state(db).pid != first)
    assert second
    assert "killed by signal 9" in heartbeat.load_worker_state(db).last_error


@pytest.mark.slow
def test_ctrl_c_stops_the_app_and_its_worker(served):
    db = Database(served.project)
    worker = until(lambda: heartbeat.load_worker_state(db).alive and heartbeat.load_worker_state(db).pid)
    served.process.send_signal(2)
    assert served.process.wait(120) is not None
    until(lambda: not os.path.exists(f"/proc/{worker}"))  # noqa: PTH110
    assert not heartbeat.load_worker_state(db).alive


def kept_by_the_file_alone(project: Path, folder: Path) -> int:
    """Decisions in a copy of project.db, without what SQLite keeps beside it."""
    folder.mkdir()
    shutil.copy(project / "project.db", folder)
    return Database(folder).value("SELECT count(*) FROM decision")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_copied_project_db_contains_all_decisions_after_an_orderly_shutdown(project, processes, tmp_path, how):
    served = Served(project, processes)
    for number in range(20):
        served.post("/api/decisions", {"decisions": [label(number + 1)]})
    assert kept_by_the_file_alone(project, tmp_path / "before") == 0  # or this test would show nothing
    served.process.send_signal(how)
    served.process.wait(120)
    assert kept_by_the_file_alone(project, tmp_path / "after") == 20


@pytest.mark.slow
def test_copied_project_db_contains_all_decisions_after_a_decide_command(project, annotator_process, tmp_path):
    reader = Database(project)  # stays open: otherwise SQLite does it itself when the last connection is closed
    assert reader.value("SELECT count(*) FROM decision") == 0
    annotator_process("decide", project, "00.jpg", "fox", "present")
    assert kept_by_the_file_alone(project, tmp_path / "decided") == 1
    annotator_process("decide", project, "01.jpg", "fox", "absent")
    assert kept_by_the_file_alone(project, tmp_path / "again") == 2


@pytest.mark.slow
def test_moved_project_is_detected_and_nothing_is_written_at_the_old_path(
    photos, project, processes, annotator, tmp_path
):
    draw(photos / "large.jpg", size=(2000, 1500))
    annotator("init", project, "--images", photos)
    log = tmp_path / "log"
    log.mkdir()
    served = Served(project, processes, log=log)
    assert served.post("/api/decisions", {"decisions": [label(1)]})["saved"]
    until(lambda: heartbeat.load_worker_state(Database(project)).alive)
    project.rename(tmp_path / "moved")
    for path, body in (
        ("/api/decisions", {"decisions": [label(2)]}),
        ("/api/work", {"holder": "h", "mode": "annotate", "want": 1}),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            served.post(path, body)
        assert refused.value.code == 503 and "was moved" in json.loads(refused.value.read())["error"]
    assert served.get("/api/thumb/25")[0] == 503
    until(lambda: "was moved" in served.log.read_text())  # the watch, which starts no worker there
    served.process.terminate()
    served.process.wait(120)
    assert not project.exists()
    assert Database(tmp_path / "moved").value("SELECT count(*) FROM decision") == 1

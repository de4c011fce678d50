"""What the worker embeds next: labeled images before others, and few of an address that does not answer."""

import http.server
import uuid
from functools import partial

import numpy as np
import pytest
from harness.remote_images import picture, web_server

from annotator.exchange.project_setup import set_up_project
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.locations import remote_files
from annotator.store.locations.addresses import parse_location
from annotator.store.locations.remote_files import UNREADABLE_NOW_PROBLEM, RemoteFiles
from annotator.worker.features import image_embedder, unreachable_addresses
from annotator.worker.features.work_list import WorkList
from annotator.worker.process import Worker

BIRDS = 40


def label(db, image_id):
    made = Decision(str(uuid.uuid4()), "label", "Ann", "click", image_id=image_id, class_id=1, state=1)
    assert not decisions.save(db, [made]).refused


def test_labeled_images_are_embedded_first_even_when_labeled_later(db):
    as_shown = images.load_ids_in_working_order(db).tolist()
    label(db, as_shown[9])
    missing = WorkList(db, np.array([as_shown[1]]))
    assert len(missing) == 23 and missing.pop(3) == [as_shown[9], as_shown[0], as_shown[2]]
    for place in (2, 20, 15, 1):  # one that was taken, two that wait, one that has features
        label(db, as_shown[place])
    assert missing.pop(1) == [as_shown[20]] and missing.pop(2) == [as_shown[15], as_shown[3]]
    rest = [as_shown[place] for place in range(4, 24) if place not in (9, 15, 20)]
    assert len(missing) == len(rest) and missing.pop(100) == rest
    assert len(missing) == 0 and missing.pop(1) == []


class Web(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *values):
        pass


@pytest.mark.slow
def test_images_of_an_unreachable_url_cause_few_retries_and_are_embedded_after_it_returns(tmp_path, monkeypatch):
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(remote_files, "_files_by_address", {})
    for folder, count in (("www/birds", BIRDS), ("here", 3)):
        (tmp_path / folder).mkdir(parents=True)
        for number in range(count):
            (tmp_path / folder / f"{folder[0]}{number}.jpg").write_bytes(picture(100 * len(folder) + number))
    handler = partial(Web, directory=str(tmp_path / "www"))
    address, server = web_server(handler)
    for folder in (f"{address}/birds", str(tmp_path / "here")):
        set_up_project(tmp_path / "p", images_folder=parse_location(folder), in_place=folder.startswith("http"))
    server.shutdown()
    server.server_close()
    db = Database(tmp_path / "p")
    db.set_setting("backbone", "efficientnet_lite0")
    asked, ask = [], RemoteFiles._call
    monkeypatch.setattr(RemoteFiles, "_call", lambda self, *v, **o: (asked.append(v[1]), ask(self, *v, **o))[1])
    for module, name, value in (
        (remote_files, "MAX_TRIES", 1),
        (unreachable_addresses, "READ_AHEAD_FILES", 4),
        (image_embedder, "IMAGES_PER_ROUND", 8),
    ):
        monkeypatch.setattr(module, name, value)
    worker = Worker(db.paths.project)
    try:
        worker.image_embedder.embed_missing()
        here = images.load_ids_by_name(db)
        assert sorted(worker.context.get_features().image_ids) == [here[f"h{number}.jpg"] for number in range(3)]
        noted = images.load_missing_reasons(db)
        assert len(noted) == 4 and all(problem.startswith(UNREADABLE_NOW_PROBLEM) for problem in noted.values())
        assert len(set(asked)) <= 8 < BIRDS and len(worker.image_embedder.find_missing()) == BIRDS - 4
        asked.clear()
        worker.image_embedder.embed_missing()
        assert not asked, "not at once again"
        _, server = web_server(handler, server.server_port)
        remote_files._files_by_address.clear()
        assert images.recheck_addresses(db) == 4
        worker.image_embedder.embed_missing()
        assert len(worker.context.get_features()) == BIRDS + 3 and not images.load_missing_reasons(db)
    finally:
        worker.close()
        server.shutdown()
        server.server_close()

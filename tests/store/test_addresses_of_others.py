"""Images of web folders and of Hugging Face are registered and shown where they lie: against servers of our own."""

import hashlib
import http.server
import json
from functools import partial
from urllib.parse import unquote, urlsplit

import pytest
from harness.remote_images import picture, shown, web_server

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.images import address_cache, images
from annotator.store.locations import remote_files
from annotator.store.locations.addresses import Address

pytestmark = pytest.mark.process


def test_web_folder_is_registered_in_place_and_reports_deleted_images(tmp_path, monkeypatch):
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(remote_files, "_files_by_address", {})
    root = tmp_path / "www/birds"
    for number, name in enumerate(("a.jpg", "deep er/b+%.png", "deep er/notes.txt")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(picture(number, "PNG" if name.endswith("png") else "JPEG"))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *values):
            pass

    address, server = web_server(partial(Quiet, directory=str(tmp_path / "www")))
    try:
        done = set_up_project(
            tmp_path / "p", images_folder=Address.parse(f"{address}/birds/"), in_place=True
        ).registered
        db = Database(tmp_path / "p")
        assert done.added == 2 and not done.bad
        for name in ("a.jpg", "deep er/b+%.png"):
            assert shown(db, images.find_image(db, name).id).read_bytes() == (root / name).read_bytes()
        (root / "a.jpg").unlink()
        done = set_up_project(tmp_path / "p", images_folder=Address.parse(f"{address}/birds"), in_place=True).registered
        assert (done.known, [bad.path for bad in done.missing]) == (1, ["a.jpg"])
    finally:
        server.shutdown()
        server.server_close()


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of Hugging Face as listing and reading one data set needs."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, files = unquote(urlsplit(self.path).path), self.server.files
        self.server.asked.append(path)
        tree, file = "/api/datasets/ann/birds/tree/main", "/datasets/ann/birds/resolve/main/"
        if path.startswith(file) and path[len(file) :] in files:
            content, (_, _, span) = files[path[len(file) :]], self.headers.get("Range", "").partition("=")
            first, last = (int(end) for end in span.split("-")) if span else (0, len(content) - 1)
            return self._send(206 if span else 200, content[first : last + 1])
        if path.startswith(tree):
            folder = path[len(tree) :].strip("/")
            return self._send(200, json.dumps(self._entries(folder)).encode())
        if path in ("/api/datasets/ann/birds", "/api/datasets/ann/birds/revision/main"):
            return self._send(200, json.dumps({"id": "ann/birds", "sha": "0" * 40, "siblings": []}).encode())
        return self._send(404, b'{"error": "Repository not found"}')

    do_HEAD = do_GET  # noqa: N815

    def _entries(self, folder):
        below = [name for name in self.server.files if name.startswith(f"{folder}/" if folder else "")]
        entries = []
        for name in below:
            head, _, rest = name[len(folder) :].strip("/").partition("/")
            path = f"{folder}/{head}".strip("/")
            content = self.server.files[name]
            entry = {"type": "directory", "path": path, "oid": "1" * 40, "size": 0}
            if not rest:
                entry |= {"type": "file", "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                if "lfs" in name:
                    lfs = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
                    entry |= {"lfs": lfs}
            entries.append(entry)
        return [entry for number, entry in enumerate(entries) if entry not in entries[:number]]

    def _send(self, status, content):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *values):
        pass


def test_hugging_face_dataset_is_registered_by_checksum_and_fetched_when_shown(tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(remote_files, "_files_by_address", {})
    address, server = web_server(Hub)
    server.asked = []
    server.files = {"images/a.jpg": picture(1), "images/lfs/b.jpg": picture(2), "README.md": b"x"}
    template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    try:
        again = partial(
            set_up_project, tmp_path / "p", images_folder=Address.parse("hf://datasets/ann/birds/images"), in_place=True
        )
        assert again().registered.added == 2
        db = Database(tmp_path / "p")
        assert db.tuples("SELECT name, sha256, width FROM image ORDER BY name") == [
            ("a.jpg", hashlib.sha256(picture(1)).hexdigest(), 96),
            ("lfs/b.jpg", hashlib.sha256(picture(2)).hexdigest(), 0),
        ]
        assert not [path for path in server.asked if path.endswith("b.jpg")], "only its checksum was read"
        assert shown(db, images.find_image(db, "lfs/b.jpg").id).read_bytes() == picture(2)
        server.files["images/a.jpg"] = picture(3)
        assert again().registered.added == 1, "a listing is never an older one"
        with pytest.raises(AnnotatorError, match="Is the bucket and the path spelled right"):
            set_up_project(tmp_path / "q", images_folder=Address.parse("hf://datasets/ann/none"), in_place=True)
        assert address_cache.get_cache(db).measure_usage()[0] == 1
    finally:
        server.shutdown()
        server.server_close()

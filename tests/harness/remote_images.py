"""Images on other servers: an S3 server, a web server, and the file that a browser gets of such an image."""

import http.server
import io
import socket
import subprocess
import sys
import threading
from contextlib import closing

import numpy as np
import pytest
from PIL import Image

from annotator.store.images import browser_copies
from harness.served import until


def picture(seed: int, kind: str = "JPEG", size: tuple[int, int] = (96, 72)) -> bytes:
    file = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(noise).save(file, kind)
    return file.getvalue()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """An S3 server in a process of its own: its address."""
    pytest.importorskip("moto.server")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (tmp_path_factory.mktemp("moto") / "log").open("w")
    program = f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=log, stderr=log)
    until(lambda: _answers(port))
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()


def _answers(port):
    with closing(socket.socket()) as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def use_server(patch: pytest.MonkeyPatch, server: str) -> None:
    """Let this process, and those that it starts, take this server for that of its buckets."""
    for name, value in (
        ("AWS_ENDPOINT_URL", server),
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        patch.setenv(name, value)


def shown(db, image_id, kind=browser_copies.THUMB):
    """The file that a browser gets, as the route asks for it."""
    if (found := browser_copies.find_ready_file(db, image_id, kind)) is None:
        browser_copies.fetch_original(db, image_id)
        found = browser_copies.make(db, image_id, kind)
    return found[0]


def web_server(handler, port=0):
    """(address, server) in a thread."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", server

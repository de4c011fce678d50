"""A web server leads to no service of this machine: by redirects, by any spelling of an address, by a second name.

127.0.0.1 stands for the web server that somebody imports from, 127.0.0.2 for a service that only this machine reaches.
"""

import http.server
import io
import socket
import threading
from contextlib import contextmanager

import pytest
from harness.tables import over
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.exchange.sources import fetch_source
from annotator.store.locations import addresses, file_systems, web_servers
from annotator.store.locations.addresses import Address, check_ip_address
from annotator.store.locations.remote_files import RemoteFiles

pytest.importorskip("aiohttp")
pytestmark = pytest.mark.process
SERVICE = "127.0.0.2"


def picture():
    stream = io.BytesIO()
    Image.new("RGB", (40, 30), (9, 99, 199)).save(stream, "PNG")
    return stream.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers every name with the picture, but those of `server.answers` (status, headers) as these say."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Authorization", "")))
        status, headers = self.server.answers.get(self.path, (200, {}))
        content = picture() if status == 200 else b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value.replace("PORT", str(self.server.other)))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *values):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Counts its connections."""

    daemon_threads = True

    def __init__(self, host):
        super().__init__((host, 0), Handler)
        self.asked, self.answers, self.other, self.connections = [], {}, 0, 0
        self.address = f"http://{host}:{self.server_port}"

    def get_request(self):
        self.connections += 1
        return super().get_request()


@contextmanager
def serving(host):
    server = Server(host)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def servers():
    with serving("127.0.0.1") as outside, serving(SERVICE) as inside:
        outside.other = inside.server_port
        yield outside, inside


@pytest.fixture
def pair(servers, monkeypatch):
    """(the web server, the service): the service is where a cloud answers its machines about themselves."""
    monkeypatch.setattr(addresses, "METADATA_ADDRESSES", (*addresses.METADATA_ADDRESSES, SERVICE))
    monkeypatch.setattr(file_systems, "RETRY_WAIT_SECONDS", 0)
    for server in servers:
        server.asked.clear()
        server.answers.clear()
        server.connections = 0
    return servers


SPELLINGS = [
    "http://127.0.0.2:PORT/secret.png",
    "http://[::ffff:127.0.0.2]:PORT/secret.png",
    "http://[::ffff:7f00:2]:PORT/secret.png",
    "http://2130706434:PORT/secret.png",
    "http://0x7f000002:PORT/secret.png",
    "http://0x7f.0.0.2:PORT/secret.png",
    "http://017700000002:PORT/secret.png",
    "http://0177.0.0.02:PORT/secret.png",
    "http://127.2:PORT/secret.png",
    "http://127.0.0.2.:PORT/secret.png",
    "http://127。0。0。2:PORT/secret.png".encode().decode("latin-1"),
    "http://a@127.0.0.2:PORT/secret.png",
    "http://elsewhere.example\\@127.0.0.2:PORT/secret.png",
    "//127.0.0.2:PORT/secret.png",
]
HEADERS = ["Location", "URI", "Refresh", "Content-Location"]


def landed(folder):
    return [file for file in folder.rglob("*.png") if file.is_file()]


@pytest.mark.slow
@over(named=SPELLINGS, header=HEADERS, status=[302, 308])
def test_image_download_never_reaches_a_local_service_by_redirects_or_odd_url_spellings(
    named, header, status, pair, tmp_path
):
    outside, inside = pair
    value = f"0; url={named}" if header == "Refresh" else named
    outside.answers = {"/a.png": (status, {header: value}), "/b.png": (status, {"Location": "/a.png"})}
    for name in ("a.png", "b.png"):
        with pytest.raises(AnnotatorError):
            fetch_source(Address.parse(f"{outside.address}/{name}"), tmp_path / "p")
        with pytest.raises(AnnotatorError):
            RemoteFiles(Address.parse(outside.address)).read(name)
    assert not landed(tmp_path)
    assert inside.connections == 0


@over(header=HEADERS[1:], status=[200, 300, 305])
def test_image_download_ignores_location_headers_of_responses_that_are_not_redirects(header, status, pair, tmp_path):
    outside, inside = pair
    outside.answers = {"/a.png": (status, {header: "http://127.0.0.2:PORT/secret.png"})}
    if status == 200:
        assert RemoteFiles(Address.parse(outside.address)).read("a.png") == picture()
    else:
        with pytest.raises(AnnotatorError):
            fetch_source(Address.parse(f"{outside.address}/a.png"), tmp_path / "p")
    assert inside.connections == 0


def test_image_download_follows_valid_redirects_and_sends_passwords_only_to_their_server(pair, tmp_path, monkeypatch):
    outside, inside = pair
    monkeypatch.setattr(addresses, "METADATA_ADDRESSES", ())
    outside.answers = {
        "/old/a.png": (301, {"Location": "/new/a.png"}),
        "/b.png": (307, {"Location": "http://127.0.0.2:PORT/b.png"}),
        "/round.png": (302, {"Location": "round.png"}),
        "/file.png": (302, {"Location": "file:///etc/passwd"}),
        "/none.png": (302, {}),
    }
    secret = outside.address.replace("//", "//ann:pw@")
    for name in ("old/a.png", "b.png"):
        fetch_source(Address.parse(f"{secret}/{name}"), tmp_path / "p")
    assert len(landed(tmp_path)) == 2
    assert {(path, bool(given)) for path, given in outside.asked} >= {("/new/a.png", True), ("/b.png", True)}
    assert inside.asked and not any(given for _, given in inside.asked)
    for name, said in (("round", "more than 10 times"), ("file", "file://, which is not"), ("none", "without an")):
        with pytest.raises(AnnotatorError, match=said):
            fetch_source(Address.parse(f"{outside.address}/{name}.png"), tmp_path / "q")


@pytest.fixture
def names(monkeypatch):
    """Names that a name server of their owner answers: a list of answers each, of which the last one stays."""
    answers, resolve = {}, socket.getaddrinfo

    def getaddrinfo(host, *values, **options):
        if host not in answers:
            return resolve(host, *values, **options)
        found = answers[host].pop(0) if len(answers[host]) > 1 else answers[host][0]
        return [info for place in found for info in resolve(place, *values, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


def test_image_download_is_refused_when_a_later_dns_answer_is_a_local_address(pair, names, tmp_path):
    _, inside = pair
    names["photos.example"] = [["127.0.0.1"], ["127.0.0.1"], [SERVICE]]
    with pytest.raises(AnnotatorError, match=r"photos.example is 127.0.0.2, an address inside"):
        fetch_source(Address.parse(f"http://photos.example:{inside.server_port}/secret.png"), tmp_path / "p")
    assert inside.connections == 0


def test_image_download_refuses_a_host_with_both_local_and_remote_ip_addresses(pair, names, tmp_path):
    outside, _ = pair
    names["photos.example"] = [["127.0.0.1", "192.0.2.1", "8.8.8.8"]]
    assert web_servers.is_own_host("127.0.0.1")
    assert not web_servers.is_own_host("photos.example")
    with pytest.raises(AnnotatorError, match=r"photos.example is .*an address inside"):
        fetch_source(Address.parse(f"http://photos.example:{outside.server_port}/a.png"), tmp_path / "p")
    assert outside.connections == 0


def test_image_download_ignores_proxies_from_environment_variables(pair, tmp_path, monkeypatch):
    outside, inside = pair
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, inside.address)
    fetch_source(Address.parse(f"{outside.address}/a.png"), tmp_path / "p")
    assert len(landed(tmp_path)) == 1
    assert inside.connections == 0


INNER = ["::127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::1", "2002:a00:1::"]
INNER += ["fe80::1%eth0", "fec0::1", "ff02::1", "224.0.0.1", "0.0.0.0", "0.1.2.3", "::", "100.64.0.1", "169.254.1.1"]
INNER += ["2001:0:7f00:1::", "fd00:ec2::254", "255.255.255.255", "198.18.0.1", "127.1", "2130706433", "0x7f.1", ""]


@over(place=INNER)
def test_image_download_refuses_a_private_ip_address_of_a_remote_host(place):
    with pytest.raises(AnnotatorError):
        check_ip_address("photos.example", place, may_be_own=False)
    check_ip_address("photos.example", "2606:4700::1111", may_be_own=False)

"""What a browser gets while the app is still being imported, and that the app alone decides on everything else."""

import http.client
import socket
import threading
from collections.abc import Iterator

import pytest
from harness.served import until

from annotator.ui.serving.early_server import EarlyServer
from annotator.ui.serving.streamlit_static import get_static_folder, list_static_files

COOKIE = {"cookie": "annotator_1=valid"}


@pytest.fixture
def early() -> Iterator[EarlyServer]:
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    early = EarlyServer(listening, frozenset({"/", "/annotate"}), lambda cookie: cookie == "valid", "annotator_1")
    yield early
    early.hand_over().close()


def ask(early: EarlyServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str, bytes]:
    """Return (status, redirect address, body) of one request."""
    connection = http.client.HTTPConnection(*early.socket.getsockname(), timeout=30)
    connection.request(method, path, b"{}" if method == "POST" else None, headers)
    answer = connection.getresponse()
    return answer.status, answer.getheader("location", ""), answer.read()


def test_browser_with_access_gets_the_page_and_its_scripts_before_the_app_is_ready(early):
    status, _, page = ask(early, "/annotate", **COOKIE)
    assert status == 200 and b"BACKEND_BASE_URL" in page
    script = next(path for path in list_static_files() if "/js/BidiComponent." in path)
    assert script.encode() in page.replace(b"./static", b"/static")
    assert ask(early, script)[2] == (get_static_folder() / script.lstrip("/")).read_bytes()


def test_link_with_a_key_shows_a_page_that_uses_no_key_up(early):
    status, _, page = ask(early, "/?key=once", **{"sec-fetch-dest": "document"})
    assert status == 200 and b"Opening the project" in page and b"once" not in page


@pytest.mark.parametrize(
    ("path", "method", "headers"),
    [
        ("/annotate", "GET", {}),
        ("/annotate", "GET", {"cookie": "annotator_1=forged"}),
        ("/annotate", "GET", COOKIE | {"host": "evil.example"}),
        ("/annotate", "GET", COOKIE | {"origin": "http://evil.example"}),
        ("/annotate?image=3", "GET", COOKIE),
        ("/?key=once", "GET", {}),
        ("/static/../../../pyproject.toml", "GET", COOKIE),
        ("/nothing", "HEAD", {}),
    ],
)
def test_all_other_requests_wait_for_the_app_and_are_redirected_to_the_same_address(early, path, method, headers):
    answers: list[tuple[int, str, bytes]] = []
    asking = threading.Thread(target=lambda: answers.append(ask(early, path, method, **headers)))
    asking.start()
    until(lambda: early.connection_count)  # else the app would accept it
    assert ask(early, "/", **COOKIE)[0] == 200
    assert not answers
    early.hand_over()
    asking.join(30)
    assert answers == [(307, path, b"")]


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize(("sender", "status"), [(COOKIE, 503), (COOKIE | {"sec-fetch-site": "same-origin"}, 307)])
def test_request_that_writes_is_refused_at_once_until_the_app_is_ready(early, method, sender, status):
    """Afterwards that of a browser is redirected, on a connection from before; a program tries again."""
    kept = http.client.HTTPConnection(*early.socket.getsockname(), timeout=30)
    kept.request("GET", "/", headers=COOKIE)
    kept.getresponse().read()
    assert ask(early, "/api/work", method, **sender)[0] == 503
    early.hand_over()
    kept.request(method, "/api/work", b"{}", sender)
    assert kept.getresponse().status == status


def test_app_accepts_connections_on_the_socket_of_the_early_server(early):
    listening = early.hand_over()
    with socket.create_connection(listening.getsockname(), timeout=30) as browser:
        browser.sendall(b"hello")
        listening.setblocking(True)
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.recv(5) == b"hello"

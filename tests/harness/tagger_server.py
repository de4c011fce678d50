"""A server that speaks the OpenAI chat format, looks at the pictures it is sent, and misbehaves as it is told to."""

import base64
import contextlib
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from PIL import Image

COLORS = {"red": (214, 30, 30), "green": (30, 160, 40), "blue": (30, 60, 200), "yellow": (240, 220, 30)}
COLORS |= {"black": (10, 10, 10), "white": (250, 250, 250)}


class Model:
    """What the server does.

    Attributes:
        does: Called for each chat completion after the colours, with its number from 0; returns None to answer rightly,
            or what to do: an HTTP status, a status with a body, "cut", "stall", "raw ..." for a line that is not HTTP,
            the text of the answer, a whole answer as bytes, or one as a dict; "drip body" and "drip headers" send 20
            bytes a second.
        refuses: Names of fields of a request that the server answers with 400.
        sees: Whether it looks at pictures.
        tokens: Whether it gives log probabilities.
        asked: The requests of chat completions after the colours.
    """

    def __init__(self) -> None:
        self.does: Callable[[int], object] = lambda number: None
        self.colors: object = None
        self.color_requests = 0
        self.refuses: tuple[str, ...] = ()
        self.sees, self.tokens, self.key = True, False, ""
        self.asked: list[dict] = []
        self.headers: list[dict] = []
        self.lock = threading.Lock()
        self.names = ["seer"]
        self.retry_after = "0.05"

    def color_of(self, request: dict) -> str:
        """The colour that is nearest to the mean of the picture."""
        [url] = [part["image_url"]["url"] for part in request["messages"][1]["content"] if part["type"] == "image_url"]
        picture = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
        mean = np.asarray(picture.convert("RGB"), float).mean((0, 1))
        return min(COLORS, key=lambda name: float(np.abs(mean - COLORS[name]).sum())) if self.sees else "red"

    def right(self, request: dict) -> str:
        """The right answer: every class that is called like the colour of the picture, or a part of its name."""
        question = request["messages"][1]["content"][0]["text"]
        names = [line.partition(": ")[0].strip('"') for line in question.splitlines()[1:]]
        colour = self.color_of(request)
        return json.dumps({name: "yes" if colour in name else "no" for name in names})


class Handler(BaseHTTPRequestHandler):
    """Answers as `server.model` says."""

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": name} for name in self.server.model.names]})

    def do_POST(self) -> None:
        model: Model = self.server.model
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if model.key and self.headers.get("authorization") != f"Bearer {model.key}":
            self._answer(401, {"error": {"message": "a key is needed"}})
            return
        if request["model"] not in model.names:
            self._answer(404, {"error": {"message": f"model {request['model']} not found"}})
            return
        if any(name in request or request.get("response_format", {}).get("type") == name for name in model.refuses):
            self._answer(400, {"error": {"message": "unknown field"}})
            return
        is_colors = request["messages"][1]["content"][0]["text"].startswith("One colour fills")
        does = model.colors
        model.color_requests += is_colors
        if not is_colors:
            with model.lock:
                number = len(model.asked)
                model.asked.append(request)
                model.headers.append(dict(self.headers))
            does = model.does(number)
        if does == "stall":
            time.sleep(30)
        elif does == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
            self.close_connection = True
        elif isinstance(does, str) and does.startswith("raw "):
            self.wfile.write(does.removeprefix("raw ").encode() + b"\r\n")
            self.close_connection = True
        elif isinstance(does, tuple):
            self._send_content(does[0], does[1].encode(), {})
        elif does in ("drip body", "drip headers"):
            self._drip(is_body=does == "drip body")
        elif isinstance(does, bytes):
            self._send_content(200, does, {})
        elif isinstance(does, dict):
            self._answer(200, does)
        elif isinstance(does, int):
            self._answer(does, {"error": {"message": "not now"}}, {"retry-after": model.retry_after})
        else:
            text = does if isinstance(does, str) else model.right(request)
            self._answer(200, {"choices": [{"message": {"content": text}, "logprobs": self._logprobs(text)}]})

    def _logprobs(self, text: str) -> dict | None:
        """Tokens of a character each; a value that says yes begins with "y" with a probability of 0.7."""
        if not self.server.model.tokens:
            return None
        tops = {"y": (-0.3566749, -1.2039728), "n": (-1.6094379, -0.2231435)}  # y, n: 0.7 and 0.3; 0.2 and 0.8
        content = []
        for place, letter in enumerate(text):
            begins = text[max(0, place - 3) : place] == ': "' and letter in tops
            tokens = (
                [{"token": name, "logprob": value} for name, value in zip("yn", tops[letter], strict=True)]
                if begins
                else []
            )
            content.append({"token": letter, "logprob": 0.0, "top_logprobs": tokens})
        return {"content": content}

    def _drip(self, *, is_body: bool) -> None:
        """Send an answer of 1,000 bytes, 20 a second, until the connection is closed."""
        body = json.dumps({"choices": [{"message": {"content": "x" * 900}}]}).encode().ljust(1000)
        head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n"
        at_once, slow = (head + b"\r\n", body) if is_body else (head, b"x-note: " + b"x" * 1000)
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.write(at_once)
            for byte in slow:
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)

    def _answer(self, status: int, value: dict, headers: dict[str, str] | None = None) -> None:
        self._send_content(status, json.dumps(value).encode(), headers or {})

    def _send_content(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, text in {
            "content-type": "application/json",
            "content-length": str(len(content)),
            **headers,
        }.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served_model() -> Iterator[tuple[str, Model]]:
    """The address of the server, and its model."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    server.model = Model()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", server.model
    finally:
        server.shutdown()
        server.server_close()

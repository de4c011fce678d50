"""People without a browser: a thread each, which asks the server for what a page asks for, at a person's pace.

Like the Annotate page a teammate holds images ahead, fetches their pictures, renews its leases every eight seconds,
sends each decision at once and again until it is acknowledged, and sends a few a second time, as another tab may.
"""

import http.client
import json
import random
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from benchmarks.faults.hands import WHOLE_IMAGE_CLASS, Hands
from benchmarks.faults.simulated_pages import SentDecisions, list_grid_cells

IMAGES_AHEAD, MIN_IMAGES_IN_HAND = 32, 16  # images that are held, and how few are left when more are asked for
LEASE_RENEWAL_SECONDS = 8.0  # between two renewals of the leases (item_queue.js)
TILES_PER_GRID = 12  # of a grid
RESENT_SHARE = 0.02  # share of the saved decisions that are sent once more
PATIENCE_SECONDS = 60.0  # until a request is given up


@dataclass
class RequestFigures:
    """The measurements of all teammates.

    Attributes:
        seconds: Kind of request -> the seconds of each answered one.
        statuses: Counts of statuses other than 200.
        unanswered: Requests without an answer.
        without_work: Requests for work that gave none.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: {"work": [], "picture": [], "decision": []})
    statuses: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    without_work: int = 0


class Teammate(threading.Thread):
    """A simulated person on one page, as a thread.

    Args:
        headers: The headers of their session.
        every: The mean seconds between two decisions.
    """

    def __init__(
        self,
        number: int,
        annotator: str,
        port: int,
        headers: dict[str, str],
        classes: list[int],
        every: float,
        sent: SentDecisions,
        hands: Hands,
    ):
        super().__init__(name=f"teammate {number}", daemon=True)
        self.annotator = annotator
        self.holder, self.request_figures = f"teammate-{number}-{uuid.uuid4().hex[:8]}", RequestFigures()
        self._port, self._headers, self._classes, self._every = port, headers, classes, every
        self._sent, self._hands = sent, hands
        self._chance = random.Random(number)
        self._hand: list[int] = []
        self._waiting: dict[str, dict[str, Any]] = {}
        self._ending, self._gone = threading.Event(), threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self.asked_at = 0.0  # when its leases were last renewed, on the monotonic clock
        self.trouble: Exception | None = None

    def end(self) -> None:
        """Make no more decisions; the thread ends when all earlier ones have been saved."""
        self._ending.set()

    def vanish(self) -> None:
        """Stop in mid-work, like a laptop that is closed; after this returns, no request is sent."""
        self._gone.set()
        self._ending.set()
        self.join()

    @override
    def run(self) -> None:
        try:
            at = time.monotonic() + self._chance.uniform(0, self._every)
            while not self._ending.wait(max(0.0, at - time.monotonic())):
                cells = self._take_step()
                at = max(at + cells * self._every * self._chance.uniform(0.5, 1.5), time.monotonic())
            while self._waiting and not self._gone.is_set():
                self._send_decisions()
        except Exception as error:  # of this benchmark itself: reported at the end
            self.trouble = error

    def _take_step(self) -> int:
        """Make one decision; return the number of its cells."""
        if len(self._hand) < MIN_IMAGES_IN_HAND or time.monotonic() - self.asked_at > LEASE_RENEWAL_SECONDS:
            self._fetch_images()
        if not self._hand:
            self.request_figures.without_work += 1
            return 1
        image, class_id = self._hand.pop(0), self._chance.choice(self._classes)
        self._save_decision(action="label", image=image, source="click", state=1, **{"class": class_id})
        return 1

    def _save_decision(self, **entry: Any) -> None:
        milliseconds = round(1000 * self._every)
        entry |= {"uuid": str(uuid.uuid4()), "annotator": self.annotator, "milliseconds": milliseconds}
        self._waiting[entry["uuid"]] = self._sent.entries[entry["uuid"]] = entry
        self._send_decisions()

    def _fetch_images(self) -> None:
        self.asked_at = time.monotonic()
        self._hands.keep_cells(self.holder, [(image, WHOLE_IMAGE_CLASS) for image in self._hand])
        want = IMAGES_AHEAD - len(self._hand) if len(self._hand) < MIN_IMAGES_IN_HAND else 0
        body = {"mode": "annotate", "holder": self.holder, "have": self._hand, "want": want}
        answer = self._send_request("work", "POST", "/api/work", body)
        for item in json.loads(answer)["items"] if answer else []:
            self._hands.take_cells(self.holder, [(item["id"], WHOLE_IMAGE_CLASS)])
            self._hand.append(item["id"])
            self._send_request("picture", "GET", f"/api/image/{item['id']}", None)

    def _send_decisions(self) -> None:
        answer = self._send_request("decision", "POST", "/api/decisions", {"decisions": list(self._waiting.values())})
        if not answer:
            self._ending.wait(0.2)
            return
        self._sent.record_answer(json.loads(answer), self._waiting, self._chance, RESENT_SHARE)

    def _send_request(self, kind: str, method: str, path: str, body: dict[str, Any] | None) -> bytes | None:
        """Send a request and return the body of its answer; None for another status than 200, or without an answer."""
        began = time.perf_counter()
        is_reused = self._connection is not None
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_SECONDS)
            self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection = None
            if is_reused:  # the server closes connections that were idle for five seconds; browsers open another, too
                return self._send_request(kind, method, path, body)
            self.request_figures.unanswered += 1
            return None
        if answer.status != 200:
            self.request_figures.statuses[answer.status] += 1
            return None
        self.request_figures.seconds[kind].append(time.perf_counter() - began)
        return content


class GridTeammate(Teammate):
    """A teammate who answers grids, and looks at each for as long as its images would take singly."""

    _grid: dict[str, Any] | None = None

    def _take_step(self) -> int:
        if self._grid:
            cells = [[*cell, self._chance.choice((1, -1)), tile["probability"]]
                     for cell, tile in zip(list_grid_cells(self._grid), self._grid["tiles"], strict=True)]  # fmt: skip
            self._save_decision(action="batch", source="grid", cells=cells, run=self._grid["run"])
        self.asked_at = time.monotonic()
        self._hands.keep_cells(self.holder, ())
        body = {"holder": self.holder, "have": [], "class": None, "size": TILES_PER_GRID, "want": 1}
        answer = self._send_request("work", "POST", "/api/grid", body)
        grids = json.loads(answer)["items"] if answer else []
        self._grid = grids[0] if grids else None
        if self._grid is None:
            self.request_figures.without_work += 1
            return 1
        self._hands.take_cells(self.holder, list_grid_cells(self._grid))
        for tile in self._grid["tiles"]:
            self._send_request("picture", "GET", f"/api/image/{tile['id']}", None)
        return len(self._grid["tiles"])

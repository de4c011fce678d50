"""Simulated annotators: a thread for each open page, which requests, decides and sends as a page in a browser does.

A decision gets its uuid on the page and is sent again under that uuid until the server has acknowledged it
(pages/shared/outbox.js). The answers are random: what is checked at the end is what was stored, not its truth.
"""

import http.client
import json
import random
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from benchmarks.faults.hands import WHOLE_IMAGE_CLASS, Cell, Hands

PAGE_MODES = ("annotate", "review", "grid", "autopilot")
ACTION_SOURCES = {"grid": "grid", "audit": "audit", "image": "suggestion", "click": "click"}
DECISION_PAUSE_SECONDS = 0.15  # between two decisions of one person, on average
DECISIONS_PER_REQUEST = 100  # decisions sent at once
MAX_WAITING_DECISIONS = 200  # with so many unsaved decisions an annotator waits for the server
IMPATIENT_SHARE = 0.05  # share of the requests with decisions that do not wait for the answer
RESENT_SHARE = 0.05  # share of the saved decisions that are sent once more, as another tab may do
RELOAD_SHARE = 0.02  # share of the steps that begin with another page in the same tab
PATIENCE_SECONDS = 60.0  # until a request is given up

Ask = Callable[[str, str, dict, float], dict]  # annotator, path, body, seconds -> answer


@dataclass
class SentDecisions:
    """All decisions that the annotators sent, by uuid, and the server's answers to them.

    Attributes:
        entries: Uuid -> the decision as it was sent.
        acknowledged: The uuids that the server has acknowledged as saved.
        refused: Uuid -> the reason of the refusal.
    """

    entries: dict[str, dict] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)

    def record_answer(self, answer: dict, waiting: dict[str, dict], chance: random.Random, resent_share: float) -> None:
        """Record an answer of the server, and remove what it answers from `waiting`, except what is sent once more."""
        for uuid_ in answer["saved"]:
            self.acknowledged.add(uuid_)
            self.refused.pop(uuid_, None)
            entry = waiting.pop(uuid_, None)
            if entry and chance.random() < resent_share:
                waiting[uuid_] = entry
        for uuid_, reason in answer["refused"].items():
            waiting.pop(uuid_, None)
            self.refused[uuid_] = reason


class SimulatedPage(threading.Thread):
    """A simulated annotator's open page, as a thread.

    Args:
        ask: Sends a body to a route in an annotator's name and returns the answer.
    """

    def __init__(self, name: str, number: int, seed: int, ask: Ask, sent: SentDecisions, hands: Hands):
        super().__init__(name=f"{name} {number}", daemon=True)
        self.annotator, self._ask, self._sent, self._hands = name, ask, sent, hands
        self._chance = random.Random(f"{seed}/{number}")
        self._page, self._holder, self._before = PAGE_MODES[number % len(PAGE_MODES)], f"page-{seed}-{number}-0", ""
        self._waiting: dict[str, dict] = {}
        self._own: list[dict] = []  # the newest decisions of this page, which it can take back
        self._seen: list[int] = []  # images that were on screen
        self._classes: list[int] = []
        self._ending = threading.Event()
        self.trouble: Exception | None = None

    def end(self) -> None:
        """Make no more decisions; the thread ends when all earlier ones have been saved."""
        self._ending.set()

    @property
    def waiting_count(self) -> int:
        """Return the number of decisions that the server has not acknowledged yet."""
        return len(self._waiting)

    @override
    def run(self) -> None:
        try:
            while not self._ending.is_set():
                self._take_step()
                self._ending.wait(self._chance.expovariate(1 / DECISION_PAUSE_SECONDS))
            while self._waiting:
                self._send_waiting()
                self._ending.clear()
                self._ending.wait(0.2)
        except Exception as error:  # of this benchmark itself: reported at the end
            self.trouble = error

    def _take_step(self) -> None:
        if self._chance.random() < RELOAD_SHARE:
            self._page = self._chance.choice(PAGE_MODES)
            self._before, self._holder = self._holder, f"{self._holder.rpartition('-')[0]}-{uuid.uuid4().hex[:8]}"
            self._hands.rename_page(self._holder, self._before)
        if len(self._waiting) < MAX_WAITING_DECISIONS:
            if not self._classes:
                answer = self._post_body("/api/classes", {})
                self._classes = [class_["id"] for class_ in answer["classes"]] if answer else []
            if self._classes:
                work = {"grid": self._decide_grid, "autopilot": self._decide_action}.get(
                    self._page, self._decide_images
                )
                work()
            if self._own and self._chance.random() < 0.15:
                self._undo_decision()
            if self._seen and self._chance.random() < 0.05:
                self._queue_decision(
                    action="label", image=self._chance.choice(self._seen), source="click", **self._draw_answer()
                )
        self._send_waiting()

    # -- pages

    def _decide_images(self) -> None:
        items = self._request_work(
            "/api/work", {"mode": self._page, "want": 3}, lambda item: [(item["id"], WHOLE_IMAGE_CLASS)]
        )
        for item in items:
            self._seen.append(item["id"])
            if self._chance.random() < 0.1:
                self._queue_decision(action="skip", image=item["id"], source="click")
            elif self._chance.random() < 0.1:
                self._queue_decision(
                    action="flag", image=item["id"], note=self._chance.choice(["", "odd"]), source="click"
                )
            elif chips := item["suggestions"]:
                for chip in chips[:3]:
                    self._queue_decision(action="label", image=item["id"], source="suggestion", run=chip["run_id"],
                                 score=chip["probability"], **self._draw_answer(chip["class_id"]))  # fmt: skip
            else:
                self._queue_decision(action="label", image=item["id"], source="click", **self._draw_answer())
            if self._chance.random() < 0.1:
                self._queue_decision(action="done", image=item["id"], source="done")

    def _decide_grid(self) -> None:
        audit = self._chance.random() < 0.3
        wanted = {"class": self._chance.choice([None, *self._classes]), "size": 6, "want": 1, "audit": audit}
        for grid in self._request_work("/api/grid", wanted, list_grid_cells):
            self._decide_batch(grid, grid["run"], "audit" if audit else "grid")

    def _decide_action(self) -> None:
        for action in self._request_work("/api/autopilot", {"want": 1}, _list_action_cells):
            if action["grid"]:
                self._decide_batch(action["grid"], action["grid"]["run"], ACTION_SOURCES[action["kind"]])
            elif action["item"]:
                image = action["item"]["id"]
                self._seen.append(image)
                for chip in action["item"]["suggestions"][:2]:
                    self._queue_decision(action="label", image=image, source="suggestion", run=chip["run_id"],
                                 score=chip["probability"], **self._draw_answer(chip["class_id"]))  # fmt: skip
                self._queue_decision(action="label", image=image, source="click", **self._draw_answer())

    def _request_work(self, path: str, body: dict, cells: Callable[[dict], list[Cell]]) -> list[dict]:
        """Request work for this page, which gives up all that it held, and record the new cells in Hands."""
        self._hands.keep_cells(self._holder, ())
        answer = self._post_body(path, {"holder": self._holder, "have": [], "instead": self._before, **body})
        if answer is None:
            return []
        self._before = ""
        for item in answer["items"]:
            self._hands.take_cells(self._holder, cells(item))
        return answer["items"]

    # -- decisions

    def _draw_answer(self, class_id: int | None = None) -> dict:
        return {
            "class": class_id or self._chance.choice(self._classes),
            "state": self._chance.choice([1, 1, -1, -1, 0]),
        }

    def _decide_batch(self, grid: dict, run: int | None, source: str) -> None:
        cells = [
            [tile["id"], grid["class"], self._chance.choice([1, -1, -1, 0]), tile["probability"]]
            for tile in grid["tiles"]
        ]
        if cells:
            self._queue_decision(action="batch", source=source, cells=cells, run=run)

    def _undo_decision(self) -> None:
        """Undo one of the page's decisions; half of the time make it again."""
        old = self._own.pop(self._chance.randrange(len(self._own)))
        self._queue_decision(
            action="undo", source="click", undoes=old["uuid"] + (":0" if old["action"] == "batch" else "")
        )
        if self._chance.random() < 0.5 and old["source"] != "audit":
            self._queue_decision(**{key: value for key, value in old.items() if key not in ("uuid", "annotator")})

    def _queue_decision(self, **entry: Any) -> None:
        entry |= {"uuid": str(uuid.uuid4()), "annotator": self.annotator, "milliseconds": self._chance.randint(1, 5000)}
        self._waiting[entry["uuid"]] = self._sent.entries[entry["uuid"]] = entry
        if entry["action"] != "undo":
            self._own = [*self._own[-50:], entry]

    def _send_waiting(self) -> None:
        if not self._waiting:
            return
        entries = list(self._waiting.values())[:DECISIONS_PER_REQUEST]
        impatient = self._chance.random() < IMPATIENT_SHARE
        answer = self._post_body("/api/decisions", {"decisions": entries}, 0.02 if impatient else PATIENCE_SECONDS)
        if answer is not None:
            self._sent.record_answer(answer, self._waiting, self._chance, RESENT_SHARE)

    def _post_body(self, path: str, body: dict, patience: float = PATIENCE_SECONDS) -> dict | None:
        """Return the server's answer; None without an answer, or if the request is to be sent again."""
        try:
            return self._ask(self.annotator, path, body, patience)
        except urllib.error.HTTPError as error:
            if error.code in (409, 500, 503, 507):  # a full disk, a server that is ending: sent again
                return None
            raise RuntimeError(f"{path} {json.dumps(body)[:500]}: {error.code} {error.read()[:500]}") from error
        except (OSError, http.client.HTTPException, ValueError):
            return None


def send_request(address: str, headers: dict[str, str], path: str, body: dict, patience: float) -> dict:
    """Send one request as a page does, and return the answer.

    Raises:
        urllib.error.HTTPError: The status is an error.
        OSError: The server does not answer.
    """
    request = urllib.request.Request(address + path, data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=patience) as answer:
        return json.loads(answer.read())


def list_grid_cells(grid: dict) -> list[Cell]:
    """Return the cells of a grid, one for each tile."""
    return [(tile["id"], grid["class"]) for tile in grid["tiles"]]


def _list_action_cells(action: dict) -> list[Cell]:
    return (
        list_grid_cells(action["grid"])
        if action["grid"]
        else [(action["item"]["id"], WHOLE_IMAGE_CLASS)]
        if action["item"]
        else []
    )

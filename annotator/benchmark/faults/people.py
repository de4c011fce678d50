"""Simulated annotators: a thread for each open page, which requests, decides and sends as a page in a browser does.

A decision gets its uuid on the page and is sent again under that uuid until the server has acknowledged it
(components/shared/outbox.js). The answers are random: what is checked at the end is what was stored, not its truth.
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

from annotator.benchmark.faults.hands import WHOLE, Cell, Hands

PAGES = ("annotate", "review", "grid", "autopilot")
SOURCES = {"grid": "grid", "audit": "audit", "image": "suggestion", "click": "click"}
PAUSE = 0.15  # seconds between two decisions of one person, on average
TOGETHER = 100  # decisions sent at once
MOST_WAITING = 200  # with so many unsaved decisions an annotator waits for the server
IMPATIENT = 0.05  # share of the requests with decisions that do not wait for the answer
AGAIN = 0.05  # share of the saved decisions that are sent once more, as another tab may do
RELOADS = 0.02  # share of the steps that begin with another page in the same tab
PATIENCE = 60.0  # seconds until a request is given up

Ask = Callable[[str, str, dict, float], dict]  # annotator, path, body, seconds -> answer


@dataclass
class Sent:
    """All decisions that the annotators sent, by uuid, and the server's answers to them.

    Attributes:
        entries: Uuid -> the decision as it was sent.
        acknowledged: The uuids that the server has acknowledged as saved.
        refused: Uuid -> the reason of the refusal.
    """

    entries: dict[str, dict] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)


class Person(threading.Thread):
    """A simulated annotator's open page, as a thread.

    Args:
        ask: Sends a body to a route in an annotator's name and returns the answer.
    """

    def __init__(self, name: str, number: int, seed: int, ask: Ask, sent: Sent, hands: Hands):
        super().__init__(name=f"{name} {number}", daemon=True)
        self.annotator, self._ask, self._sent, self._hands = name, ask, sent, hands
        self._chance = random.Random(f"{seed}/{number}")
        self._page, self._holder, self._before = PAGES[number % len(PAGES)], f"page-{seed}-{number}-0", ""
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
    def waiting(self) -> int:
        """Return the number of decisions that the server has not acknowledged yet."""
        return len(self._waiting)

    @override
    def run(self) -> None:
        try:
            while not self._ending.is_set():
                self._step()
                self._ending.wait(self._chance.expovariate(1 / PAUSE))
            while self._waiting:
                self._send()
                self._ending.clear()
                self._ending.wait(0.2)
        except Exception as error:  # of this benchmark itself: reported at the end
            self.trouble = error

    def _step(self) -> None:
        if self._chance.random() < RELOADS:
            self._page = self._chance.choice(PAGES)
            self._before, self._holder = self._holder, f"{self._holder.rpartition('-')[0]}-{uuid.uuid4().hex[:8]}"
            self._hands.rename(self._holder, self._before)
        if len(self._waiting) < MOST_WAITING:
            if not self._classes:
                answer = self._post("/api/classes", {})
                self._classes = [class_["id"] for class_ in answer["classes"]] if answer else []
            if self._classes:
                work = {"grid": self._decide_grid, "autopilot": self._decide_action}.get(
                    self._page, self._decide_images
                )
                work()
            if self._own and self._chance.random() < 0.15:
                self._take_back()
            if self._seen and self._chance.random() < 0.05:
                self._decide(action="label", image=self._chance.choice(self._seen), source="click", **self._answer())
        self._send()

    # -- pages

    def _decide_images(self) -> None:
        items = self._next("/api/work", {"mode": self._page, "want": 3}, lambda item: [(item["id"], WHOLE)])
        for item in items:
            self._seen.append(item["id"])
            if self._chance.random() < 0.1:
                self._decide(action="skip", image=item["id"], source="click")
            elif self._chance.random() < 0.1:
                self._decide(action="flag", image=item["id"], note=self._chance.choice(["", "odd"]), source="click")
            elif chips := item["suggestions"]:
                for chip in chips[:3]:
                    self._decide(action="label", image=item["id"], source="suggestion", run=chip["run_id"],
                                 score=chip["probability"], **self._answer(chip["class_id"]))  # fmt: skip
            else:
                self._decide(action="label", image=item["id"], source="click", **self._answer())
            if self._chance.random() < 0.1:
                self._decide(action="done", image=item["id"], source="done")

    def _decide_grid(self) -> None:
        audit = self._chance.random() < 0.3
        wanted = {"class": self._chance.choice([None, *self._classes]), "size": 6, "want": 1, "audit": audit}
        for grid in self._next("/api/grid", wanted, cells_of):
            self._batch(grid, grid["run"], "audit" if audit else "grid")

    def _decide_action(self) -> None:
        for action in self._next("/api/autopilot", {"want": 1}, _cells_of_action):
            if action["grid"]:
                self._batch(action["grid"], action["grid"]["run"], SOURCES[action["kind"]])
            elif action["item"]:
                image = action["item"]["id"]
                self._seen.append(image)
                for chip in action["item"]["suggestions"][:2]:
                    self._decide(action="label", image=image, source="suggestion", run=chip["run_id"],
                                 score=chip["probability"], **self._answer(chip["class_id"]))  # fmt: skip
                self._decide(action="label", image=image, source="click", **self._answer())

    def _next(self, path: str, body: dict, cells: Callable[[dict], list[Cell]]) -> list[dict]:
        """Request work for this page, which gives up all that it held, and record the new cells in Hands."""
        self._hands.keep(self._holder, ())
        answer = self._post(path, {"holder": self._holder, "have": [], "instead": self._before, **body})
        if answer is None:
            return []
        self._before = ""
        for item in answer["items"]:
            self._hands.take(self._holder, cells(item))
        return answer["items"]

    # -- decisions

    def _answer(self, class_id: int | None = None) -> dict:
        return {
            "class": class_id or self._chance.choice(self._classes),
            "state": self._chance.choice([1, 1, -1, -1, 0]),
        }

    def _batch(self, grid: dict, run: int | None, source: str) -> None:
        cells = [
            [tile["id"], grid["class"], self._chance.choice([1, -1, -1, 0]), tile["probability"]]
            for tile in grid["tiles"]
        ]
        if cells:
            self._decide(action="batch", source=source, cells=cells, run=run)

    def _take_back(self) -> None:
        """Undo one of the page's decisions; half of the time make it again."""
        old = self._own.pop(self._chance.randrange(len(self._own)))
        self._decide(action="undo", source="click", undoes=old["uuid"] + (":0" if old["action"] == "batch" else ""))
        if self._chance.random() < 0.5 and old["source"] != "audit":
            self._decide(**{key: value for key, value in old.items() if key not in ("uuid", "annotator")})

    def _decide(self, **entry: Any) -> None:
        entry |= {"uuid": str(uuid.uuid4()), "annotator": self.annotator, "milliseconds": self._chance.randint(1, 5000)}
        self._waiting[entry["uuid"]] = self._sent.entries[entry["uuid"]] = entry
        if entry["action"] != "undo":
            self._own = [*self._own[-50:], entry]

    def _send(self) -> None:
        if not self._waiting:
            return
        entries = list(self._waiting.values())[:TOGETHER]
        impatient = self._chance.random() < IMPATIENT
        answer = self._post("/api/decisions", {"decisions": entries}, 0.02 if impatient else PATIENCE)
        if answer is None:
            return
        for uuid_ in answer["saved"]:
            self._sent.acknowledged.add(uuid_)
            self._sent.refused.pop(uuid_, None)
            entry = self._waiting.pop(uuid_, None)
            if entry and self._chance.random() < AGAIN:
                self._waiting[uuid_] = entry
        for uuid_, reason in answer["refused"].items():
            self._waiting.pop(uuid_, None)
            self._sent.refused[uuid_] = reason

    def _post(self, path: str, body: dict, patience: float = PATIENCE) -> dict | None:
        """Return the server's answer; None without an answer, or if the request is to be sent again."""
        try:
            return self._ask(self.annotator, path, body, patience)
        except urllib.error.HTTPError as error:
            if error.code in (409, 500, 503, 507):  # a full disk, a server that is ending: sent again
                return None
            raise RuntimeError(f"{path} {json.dumps(body)[:500]}: {error.code} {error.read()[:500]}") from error
        except (OSError, http.client.HTTPException, ValueError):
            return None


def ask(address: str, headers: dict[str, str], path: str, body: dict, patience: float) -> dict:
    """Send one request as a page does, and return the answer.

    Raises:
        urllib.error.HTTPError: The status is an error.
        OSError: The server does not answer.
    """
    request = urllib.request.Request(address + path, data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=patience) as answer:
        return json.loads(answer.read())


def cells_of(grid: dict) -> list[Cell]:
    """Return the cells of a grid, one for each tile."""
    return [(tile["id"], grid["class"]) for tile in grid["tiles"]]


def _cells_of_action(action: dict) -> list[Cell]:
    return cells_of(action["grid"]) if action["grid"] else [(action["item"]["id"], WHOLE)] if action["item"] else []

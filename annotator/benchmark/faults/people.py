"""Made-up people: each is a thread with one open page, which asks, decides and sends as the components in a browser do.

A decision gets its uuid where it is made, waits until the server has said that it is saved, and is sent again under the
same uuid until then (components/shared/outbox.js). People answer at random: what is compared at the end is what was
stored, not whether it is true.
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

from annotator.benchmark.faults.hands import WHOLE, Cell, Hands

PAGES = ("annotate", "review", "grid", "autopilot")
SOURCES = {"grid": "grid", "audit": "audit", "image": "suggestion", "click": "click"}
PAUSE = 0.15  # seconds between two decisions of one person, on average
TOGETHER = 100  # decisions sent at once
MOST_WAITING = 200  # unsaved decisions from which on a person waits for the server
IMPATIENT = 0.05  # of the times that decisions are sent, the answer is not waited for
AGAIN = 0.05  # of the decisions are sent once more after they were saved, as another tab may do
RELOADS = 0.02  # of the steps begin with another page in the same tab
PATIENCE = 60.0


@dataclass
class Sent:
    """What all people sent, by uuid, and what the server said of it."""

    entries: dict[str, dict] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)


class Person(threading.Thread):
    """One page of one person.

    ask        sends a body to a route in somebody's name and returns the answer
    """

    def __init__(
        self, name: str, number: int, seed: int, ask: Callable[[str, str, dict, float], dict], sent: Sent, hands: Hands
    ):
        super().__init__(name=f"{name} {number}", daemon=True)
        self.annotator, self._ask, self._sent, self._hands = name, ask, sent, hands
        self._chance = random.Random(f"{seed}/{number}")
        self._page, self._holder, self._before = PAGES[number % len(PAGES)], f"page-{seed}-{number}-0", ""
        self._waiting: dict[str, dict] = {}
        self._own: list[dict] = []  # what this person decided and can take back
        self._seen: list[int] = []  # images that were on screen
        self._classes: list[int] = []
        self._ending = threading.Event()
        self.trouble: Exception | None = None

    def end(self) -> None:
        """Decide nothing more; ends when everything has been saved."""
        self._ending.set()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                self._step()
                self._ending.wait(self._chance.expovariate(1 / PAUSE))
            while self._waiting:
                self._send()
                self._ending.clear()
                self._ending.wait(0.2)
        except Exception as error:  # of this benchmark itself: told at the end
            self.trouble = error

    def _step(self) -> None:
        if self._chance.random() < RELOADS:
            self._page = self._chance.choice(PAGES)
            self._before, self._holder = self._holder, f"{self._holder.rpartition('-')[0]}-{uuid.uuid4().hex[:8]}"
            self._hands.rename(self._holder, self._before)
        if len(self._waiting) < MOST_WAITING:
            if not self._classes:
                answer = self._told("/api/classes", {})
                self._classes = [one["id"] for one in answer["classes"]] if answer else []
            if self._classes:
                {"annotate": self._images, "review": self._images, "grid": self._grid, "autopilot": self._action}[
                    self._page
                ]()
            if self._own and self._chance.random() < 0.15:
                self._take_back()
            if self._seen and self._chance.random() < 0.05:
                self._decide(action="label", image=self._chance.choice(self._seen), source="click", **self._answer())
        self._send()

    # -- pages

    def _images(self) -> None:
        items = self._next("/api/work", {"mode": self._page, "want": 3}, lambda one: [(one["id"], WHOLE)])
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

    def _grid(self) -> None:
        blind = self._chance.random() < 0.3
        wanted = {"class": self._chance.choice([None, *self._classes]), "size": 6, "want": 1, "audit": blind}
        for grid in self._next("/api/grid", wanted, _cells_of):
            self._batch(grid, grid["run"], "audit" if blind else "grid")

    def _action(self) -> None:
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
        """What this page is given, with nothing else in hand any more."""
        self._hands.keep(self._holder, ())
        answer = self._told(path, {"holder": self._holder, "have": [], "instead": self._before, **body})
        if answer is None:
            return []
        self._before = ""
        for one in answer["items"]:
            self._hands.take(self._holder, cells(one))
        return answer["items"]

    # -- decisions

    def _answer(self, class_id: int | None = None) -> dict:
        return {
            "class": class_id or self._chance.choice(self._classes),
            "state": self._chance.choice([1, 1, -1, -1, 0]),
        }

    def _batch(self, grid: dict, run: int | None, source: str) -> None:
        cells = [
            [one["id"], grid["class"], self._chance.choice([1, -1, -1, 0]), one["probability"]] for one in grid["tiles"]
        ]
        if cells:
            self._decide(action="batch", source=source, cells=cells, run=run)

    def _take_back(self) -> None:
        """Undo a decision of one's own; as often as not give the same one again."""
        old = self._own.pop(self._chance.randrange(len(self._own)))
        self._decide(action="undo", source="click", undoes=old["uuid"] + (":0" if old["action"] == "batch" else ""))
        if self._chance.random() < 0.5 and old["source"] != "audit":
            self._decide(**{key: value for key, value in old.items() if key not in ("uuid", "annotator")})

    def _decide(self, **entry: object) -> None:
        entry |= {"uuid": str(uuid.uuid4()), "annotator": self.annotator, "milliseconds": self._chance.randint(1, 5000)}
        self._waiting[entry["uuid"]] = self._sent.entries[entry["uuid"]] = entry
        if entry["action"] != "undo":
            self._own = [*self._own[-50:], entry]

    def _send(self) -> None:
        if not self._waiting:
            return
        some = list(self._waiting.values())[:TOGETHER]
        impatient = self._chance.random() < IMPATIENT
        answer = self._told("/api/decisions", {"decisions": some}, 0.02 if impatient else PATIENCE)
        if answer is None:
            return
        for name in answer["saved"]:
            self._sent.acknowledged.add(name)
            self._sent.refused.pop(name, None)
            entry = self._waiting.pop(name, None)
            if entry and self._chance.random() < AGAIN:
                self._waiting[name] = entry
        for name, reason in answer["refused"].items():
            self._waiting.pop(name, None)
            self._sent.refused[name] = reason

    def _told(self, path: str, body: dict, patience: float = PATIENCE) -> dict | None:
        """The server's answer; None when there is none, or it says that it cannot now."""
        try:
            return self._ask(self.annotator, path, body, patience)
        except urllib.error.HTTPError as error:
            if error.code in (409, 500, 503, 507):  # a full disk, a damaged moment: asked again
                return None
            raise RuntimeError(f"{path} {json.dumps(body)[:500]}: {error.code} {error.read()[:500]}") from error
        except (OSError, http.client.HTTPException, ValueError):
            return None


def ask(address: str, headers: dict[str, str], path: str, body: dict, patience: float) -> dict:
    """One request as a page makes it. Raises urllib.error.HTTPError for an error status, OSError without an answer."""
    request = urllib.request.Request(address + path, data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=patience) as answer:
        return json.loads(answer.read())


def _cells_of(grid: dict) -> list[Cell]:
    return [(tile["id"], grid["class"]) for tile in grid["tiles"]]


def _cells_of_action(action: dict) -> list[Cell]:
    return _cells_of(action["grid"]) if action["grid"] else [(action["item"]["id"], WHOLE)] if action["item"] else []

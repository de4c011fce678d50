"""What a page waits for: every route of the server, on a project of a thousand images and on one of a million.

Both projects are made up (generated.py) and served by the real page process, each in a process of its own; one client
asks both, and a bare Starlette route beside them, in turns, over one connection each, with the bodies of a person at
work: images in hand are named, decisions are written and taken back. No worker runs.
"""

import http.client
import json
import os
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from annotator.benchmark.harness.generated import PEOPLE, Made, make_project
from annotator.benchmark.harness.processes import ADDRESS, answers, free_port, python, say, wait_for
from annotator.errors import AnnotatorError
from annotator.ui.keys import headers_for

SMALL = 1000  # images beside which the large project is measured
WARM_UP = 5  # requests of each kind that are not counted
NAME = PEOPLE[0]
IN_HAND, WANT = 48, 16  # images, as a page holds them
PASSED = 500
GRID, GRIDS = 24, 2
ACTIONS = 2  # of Autopilot, at a time
CELLS = 48  # decided with one key
MEMORY = {"Rss": "rss", "Pss": "pss", "Private_Dirty": "private"}  # of /proc, kB


@dataclass
class Person:
    """Somebody at work on one project: what they ask for next, from what they were given last."""

    made: Made
    images: int
    classes: int
    connection: http.client.HTTPConnection
    headers: dict[str, str]
    pid: int
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    have: dict[str, list] = field(default_factory=dict)
    passed: dict[str, list] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def ask(self, row: str) -> tuple[float, float]:
        """One request of a row (a name in ROWS): milliseconds until its answer was read, and of computing."""
        method, path, body = ROWS[row](self)
        started, computed = time.perf_counter(), _computed(self.pid)
        self.connection.request(method, path, json.dumps(body) if body is not None else None, self.headers)
        answer = self.connection.getresponse()
        content = answer.read()
        taken, computed = time.perf_counter() - started, _computed(self.pid) - computed
        if answer.status != 200:
            raise AnnotatorError(f"{method} {path} answered {answer.status}: {content[:300].decode(errors='replace')}")
        if body is not None and "want" in body:
            self._take(row, json.loads(content)["items"])
        return 1000 * taken, 1000 * computed

    def page(self, row: str, **more: object) -> dict:
        """What every page says that asks for more."""
        body = {"holder": f"{row}-{os.getpid()}", "have": self.have.get(row, []), "passed": self.passed.get(row, [])}
        return body | more

    def image(self) -> int:
        return self.chance.randint(1, self.images)

    def labeled(self) -> int:
        """An image to decide on: one with a label, or the small project would soon have nothing left to show."""
        return self.chance.choice(self.made.labeled)

    def one_class(self) -> int:
        return self.chance.randint(1, self.classes)

    def file(self) -> int:
        """An image whose picture can be shown."""
        return self.chance.choice(self.made.files)

    def decision(self, **more: object) -> dict:
        """A body with one decision, which can be taken back later."""
        self.said.append(str(uuid.uuid4()))
        return {"decisions": [{"uuid": self.said[-1], "milliseconds": 900} | more]}

    def _take(self, row: str, items: list[dict]) -> None:
        new = []
        for one in items:
            new += _named(one)
        if not new:  # of a small project this person has seen everything by now: from the start
            self.have[row] = self.passed[row] = []
            return
        every = self.have.get(row, []) + new
        self.have[row] = every[-IN_HAND:]
        self.passed[row] = (self.passed.get(row, []) + every[:-IN_HAND])[-PASSED:]


def _named(item: dict) -> list:
    """How what was given is named when it is in hand: images, cells of a grid, or those of an action of Autopilot."""
    if "kind" in item:
        return [[item["item"]["id"], 0]] if item["item"] else _named(item["grid"])
    return [[tile["id"], item["class"]] for tile in item["tiles"]] if "tiles" in item else [item["id"]]


def _work(row: str, mode: str, **only: object) -> Callable[[Person], tuple]:
    return lambda person: ("POST", "/api/work", person.page(row, mode=mode, want=WANT, filter=only))


def _label(person: Person) -> tuple:
    cell = {"image": person.labeled(), "class": person.one_class(), "state": 1}
    return "POST", "/api/decisions", person.decision(action="label", source="click", **cell)


def _batch(person: Person) -> tuple:
    of = person.one_class()
    cells = [[image, of, 1, 0.9] for image in person.chance.sample(person.made.labeled, CELLS)]
    body = person.decision(action="batch", source="grid", cells=cells, run=1)
    person.said.pop()  # taking a batch back is another matter
    return "POST", "/api/decisions", body


def _undo(person: Person) -> tuple:
    undoes = person.said.pop() if person.said else None
    entry = {"uuid": str(uuid.uuid4()), "action": "undo", "undoes": undoes}
    return "POST", "/api/decisions", {"decisions": [entry]}


def _grids(row: str, of: int | None) -> Callable[[Person], tuple]:
    more = {"class": of, "size": GRID, "want": GRIDS}
    return lambda person: ("POST", "/api/grid", person.page(row, **more))


ROWS: dict[str, Callable[[Person], tuple]] = {
    "annotate": _work("annotate", "annotate"),
    "review": _work("review", "review"),
    "review_class": _work("review_class", "review", **{"class": 2}),
    "review_range": _work("review_range", "review", **{"from": 0.3, "to": 0.6}),
    "review_person": _work("review_person", "review", by=NAME),
    "review_likely_mistakes": _work("review_likely_mistakes", "review", kind="likely_mistakes"),
    "grid_class": _grids("grid_class", 3),
    "grid_best": _grids("grid_best", None),
    "autopilot": lambda person: ("POST", "/api/autopilot", person.page("autopilot", want=ACTIONS)),
    "classes": lambda person: ("POST", "/api/classes", {}),
    "examples": lambda person: ("POST", "/api/examples", {"class": person.one_class()}),
    "items": lambda person: ("POST", "/api/items", {"images": [person.image() for _ in range(8)]}),
    "recent": lambda person: ("POST", "/api/recent", {}),
    "decide": _label,
    "decide_batch": _batch,
    "decide_done": lambda person: (
        "POST",
        "/api/decisions",
        person.decision(action="done", source="click", image=person.labeled()),
    ),
    "undo": _undo,
    "image": lambda person: ("GET", f"/api/image/{person.file()}", None),
    "thumb": lambda person: ("GET", f"/api/thumb/{person.file()}", None),
    "map": lambda person: ("GET", "/api/map", None),
    "map_colors": lambda person: (
        "GET",
        f"/api/map/colors?by=probability&class={person.one_class()}",
        None,
    ),
    "map_select": lambda person: (
        "POST",
        "/api/map/select",
        {"polygon": [[0.4, 0.4], [0.6, 0.4], [0.6, 0.6], [0.4, 0.6]]},
    ),
}


def measure(images: int = 1_000_000, classes: int = 100, *, requests: int = 60) -> dict:
    """Times of all routes in milliseconds, and the memory of the page's process.

    requests    counted ones of each kind, on each project
    returns     {"bench", "figures", "ratios"}: `<row>_<small or large>[_cpu]_<p50 or p95>_ms`, the floor's, megabytes,
                how long the worker takes for the rankings; ratios of the large project over the small one

    Raises AnnotatorError when a route does not answer as it should; DiskFull.
    """
    with tempfile.TemporaryDirectory(prefix="annotator-bench-") as name, ExitStack() as stack:
        started = time.perf_counter()
        made = {
            "small": make_project(Path(name) / "small", min(SMALL, images), classes),
            "large": make_project(Path(name) / "large", images, classes),
        }
        figures = {"making_both_projects_seconds": round(time.perf_counter() - started, 1)}
        people, pids = {}, {}
        for size, one in made.items():
            port, pids[size] = stack.enter_context(
                _serving("annotator.benchmark.harness.page_alone", one.db.paths.project)
            )
            count = images if size == "large" else min(SMALL, images)
            connection = http.client.HTTPConnection(ADDRESS, port, timeout=60)
            headers = headers_for(one.db.paths.project, f"http://{ADDRESS}:{port}", NAME)
            people[size] = Person(one, count, classes, connection, headers, pids[size])
        floor, _ = stack.enter_context(_serving("annotator.benchmark.harness.bare"))
        times = _times(people, http.client.HTTPConnection(ADDRESS, floor, timeout=60), requests)
        figures |= _percentiles(times)
        for size, pid in pids.items():
            figures |= {f"page_memory_{size}_{kind}_mb": value for kind, value in _memory(pid).items()}
        figures |= {f"rankings_{size}_seconds": round(one.rankings_seconds, 2) for size, one in made.items()}
    figures |= {"images": images, "classes": classes, "requests": requests}
    ratios = {
        f"{row}_{name}_large_over_small": round(figures[f"{row}_large_{name}_ms"] / small, 2)
        for row in ROWS
        for name in ("p50", "p95", "cpu_p50", "cpu_p95")
        if (small := figures[f"{row}_small_{name}_ms"])
    }
    return {"bench": "store", "figures": figures, "ratios": ratios}


def _times(
    people: dict[str, Person], floor: http.client.HTTPConnection, requests: int
) -> dict[tuple[str, str], list[float]]:
    """Milliseconds by row and size, the projects and the floor taking turns."""
    times: dict[tuple[str, str], list[float]] = {}
    for number in range(requests + WARM_UP):
        for row in ROWS:
            # Who goes first changes, so that nobody always finds the machine as another has left it.
            for size in sorted(people, reverse=bool(number % 2)):
                taken, computed = people[size].ask(row)
                if number >= WARM_UP:
                    times.setdefault((row, size), []).append(taken)
                    times.setdefault((row, f"{size}_cpu"), []).append(computed)
        started = time.perf_counter()
        floor.request("POST", "/api/nothing", "{}", {"content-type": "application/json"})
        floor.getresponse().read()
        if number >= WARM_UP:
            times.setdefault(("floor", ""), []).append(1000 * (time.perf_counter() - started))
    return times


def _percentiles(times: dict[tuple[str, str], list[float]]) -> dict[str, float]:
    figures = {}
    for (row, size), values in times.items():
        name = f"{row}_{size}" if size else row
        figures |= {f"{name}_p{part}_ms": round(float(np.percentile(values, part)), 2) for part in (50, 95)}
        say(f"{name}: " + ", ".join(f"p{part} {figures[f'{name}_p{part}_ms']:.1f} ms" for part in (50, 95)))
    return figures


@contextmanager
def _serving(module: str, *arguments: object) -> Iterator[tuple[int, int]]:
    """Port and process id of a server, once it answers."""
    port = free_port()
    with python(module, *arguments, port) as process:
        wait_for(lambda: process.poll() is not None or answers(port), f"an answer of {module}")
        yield port, process.pid


def _computed(pid: int) -> float:
    """Seconds that a process has used the cores so far; 0 where it cannot be known."""
    if not sys.platform.startswith("linux"):
        return 0.0
    return time.clock_gettime((~pid << 3) | 2)  # the clock of another process, as clock_getcpuclockid(3) names it


def _memory(pid: int) -> dict[str, float]:
    """Megabytes of a process by kind; nothing where there is no /proc (macOS, Windows)."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    return {word: round(sizes[name] / 1024, 1) for name, word in MEMORY.items()}

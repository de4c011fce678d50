"""Response times of every route of the server, on a project of a thousand images and on one of a million.

Both projects are generated (harness/bulk.py) and served by the real page, a process each. Requests to both, and to a
bare Starlette route, take turns over one connection each, with the bodies that a browser sends: images in hand are
named, decisions are written and taken back. No worker runs.
"""

import http.client
import json
import os
import random
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from harness.bulk import PEOPLE_NAMES, BulkProject, make_bulk_project
from harness.child_processes import LOCAL_ADDRESS, serve_floor, serve_page
from harness.made_features import add_features, find_nearest_images

from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.errors import AnnotatorError
from annotator.ui.access.access_keys import build_request_headers

SMALL_PROJECT_IMAGES = 1000  # images beside which the large project is measured
WARM_UP = 5  # requests of each kind that are not counted
CLIENT_NAME = PEOPLE_NAMES[0]
IMAGES_IN_HAND, WANTED_IMAGES = 48, 16  # images, as a page holds them
MAX_PASSED_IMAGES = 500
TILES_PER_GRID, WANTED_GRIDS = 24, 2
WANTED_ACTIONS = 2  # of Autopilot, at a time
CELLS_PER_BATCH = 48  # decided with one key
GALLERY_TILES = 60  # of the Gallery, at a time
SIMILARITY_EXAMPLES = 20  # whose lists are compared with an exact search
Request = tuple[str, str, dict | None]  # method, path, body
MEMORY_KINDS = {"Rss": "rss", "Pss": "pss", "Private_Dirty": "private"}  # of /proc, kB


@dataclass
class Client:
    """A simulated annotator on one project, whose next requests follow from the last answers.

    Attributes:
        pid: The process id of the server.
        have: Row of ROUTE_REQUESTS -> the images or cells in hand; passed: those in hand before, at most
            MAX_PASSED_IMAGES.
        undoable: The uuids of decisions that can be undone.
        version: The version of the Gallery's listing that is being scrolled.
    """

    project: BulkProject
    images: int
    classes: int
    connection: http.client.HTTPConnection
    headers: dict[str, str]
    pid: int
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    have: dict[str, list] = field(default_factory=dict)
    passed: dict[str, list] = field(default_factory=dict)
    undoable: list[str] = field(default_factory=list)
    version: str = ""

    def time_request(self, row: str) -> tuple[float, float]:
        """Send one request of a row in ROUTE_REQUESTS; return milliseconds until its answer, and those of a core."""
        method, path, body = ROUTE_REQUESTS[row](self)
        started, computed = time.perf_counter(), _read_core_seconds(self.pid)
        content = self.send_request(method, path, body)
        seconds, computed = time.perf_counter() - started, _read_core_seconds(self.pid) - computed
        if body is not None and "want" in body:
            self._take_items(row, json.loads(content)["items"])
        if row == "gallery_scroll":
            self.version = json.loads(content)["version"]
        return 1000 * seconds, 1000 * computed

    def send_request(self, method: str, path: str, body: dict | None) -> bytes:
        """Return the answer to one request. Raises AnnotatorError for any other than 200."""
        self.connection.request(method, path, json.dumps(body) if body is not None else None, self.headers)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise AnnotatorError(f"{method} {path} answered {answer.status}: {content[:300].decode(errors='replace')}")
        return content

    def build_page_body(self, row: str, **fields: object) -> dict:
        """Return the body of a page's request for more images."""
        body = {"holder": f"{row}-{os.getpid()}", "have": self.have.get(row, []), "passed": self.passed.get(row, [])}
        return body | fields

    def choose_image(self) -> int:
        """Return the id of a random image."""
        return self.chance.randint(1, self.images)

    def choose_labeled_image(self) -> int:
        """Return an image with a label, to decide on; otherwise the small project would soon have none left to show."""
        return self.chance.choice(self.project.labeled_ids)

    def choose_class(self) -> int:
        """Return the id of a random class."""
        return self.chance.randint(1, self.classes)

    def choose_classes(self, count: int) -> list[int]:
        """Return the ids of `count` random classes."""
        return self.chance.sample(range(1, self.classes + 1), count)

    def choose_file(self) -> int:
        """Return an image whose picture can be shown."""
        return self.chance.choice(self.project.file_ids)

    def build_decision(self, **fields: object) -> dict:
        """Return a body with one decision that can be undone later."""
        self.undoable.append(str(uuid.uuid4()))
        return {"decisions": [{"uuid": self.undoable[-1], "milliseconds": 900} | fields]}

    def _take_items(self, row: str, items: list[dict]) -> None:
        new = [name for item in items for name in _list_held_names(item)]
        if not new:  # the client has seen all of a small project: start over
            self.have[row] = self.passed[row] = []
            return
        in_hand = self.have.get(row, []) + new
        self.have[row] = in_hand[-IMAGES_IN_HAND:]
        self.passed[row] = (self.passed.get(row, []) + in_hand[:-IMAGES_IN_HAND])[-MAX_PASSED_IMAGES:]


def _list_held_names(item: dict) -> list:
    """Return the names of all that a page holds from one item: an image, the cells of a grid, or those of an action."""
    if "kind" in item:
        return [[item["item"]["id"], 0]] if item["item"] else _list_held_names(item["grid"])
    return [[tile["id"], item["class"]] for tile in item["tiles"]] if "tiles" in item else [item["id"]]


def _build_work_request(row: str, mode: str, **filters: object) -> Callable[[Client], Request]:
    return lambda client: (
        "POST",
        "/api/work",
        client.build_page_body(row, mode=mode, want=WANTED_IMAGES, filter=filters),
    )


def _build_sequence_request(row: str, order: str) -> Callable[[Client], Request]:
    """Return a request for the next images in an order of files, after the last one that was passed."""

    def request(client: Client) -> Request:
        after = (client.passed.get(row) or [0])[-1]
        return (
            "POST",
            "/api/work",
            client.build_page_body(row, mode="annotate", want=WANTED_IMAGES, order=order, after=after),
        )

    return request


def _build_label_request(client: Client) -> Request:
    cell = {"image": client.choose_labeled_image(), "class": client.choose_class(), "state": 1}
    return "POST", "/api/decisions", client.build_decision(action="label", source="click", **cell)


def _build_batch_request(client: Client) -> Request:
    class_id = client.choose_class()
    cells = [[image, class_id, 1, 0.9] for image in client.chance.sample(client.project.labeled_ids, CELLS_PER_BATCH)]
    body = client.build_decision(action="batch", source="grid", cells=cells, run=1)
    client.undoable.pop()  # _undo takes single decisions back
    return "POST", "/api/decisions", body


def _build_undo_request(client: Client) -> Request:
    undoes = client.undoable.pop() if client.undoable else None
    entry = {"uuid": str(uuid.uuid4()), "action": "undo", "undoes": undoes}
    return "POST", "/api/decisions", {"decisions": [entry]}


def _build_grid_request(row: str, class_id: int | None) -> Callable[[Client], Request]:
    more = {"class": class_id, "size": TILES_PER_GRID, "want": WANTED_GRIDS}
    return lambda client: ("POST", "/api/grid", client.build_page_body(row, **more))


def _build_gallery_request(make_filter: Callable[[Client], dict], **more: object) -> Callable[[Client], Request]:
    """Return a request for the beginning of a new listing, because decisions come between any two requests of a row."""
    return lambda client: (
        "POST",
        "/api/gallery",
        {"filter": make_filter(client), "start": 0, "count": GALLERY_TILES} | more,
    )


def _build_place_request(path: str, **places: Callable[[Client], object]) -> Callable[[Client], Request]:
    return lambda client: ("POST", path, {name: place(client) for name, place in places.items()})


ROUTE_REQUESTS: dict[str, Callable[[Client], Request]] = {
    "annotate": _build_work_request("annotate", "annotate"),
    "annotate_by_name": _build_sequence_request("annotate_by_name", "name"),
    "annotate_by_time": _build_sequence_request("annotate_by_time", "time"),
    "neighbours": lambda client: ("POST", "/api/neighbours", {"image": client.choose_image(), "by": "time"}),
    "review": _build_work_request("review", "review"),
    "review_class": _build_work_request("review_class", "review", **{"class": 2}),
    "review_range": _build_work_request("review_range", "review", **{"from": 0.3, "to": 0.6}),
    "review_person": _build_work_request("review_person", "review", by=CLIENT_NAME),
    "review_likely_mistakes": _build_work_request("review_likely_mistakes", "review", kind="likely_mistakes"),
    "grid_class": _build_grid_request("grid_class", 3),
    "grid_best": _build_grid_request("grid_best", None),
    "autopilot": lambda client: ("POST", "/api/autopilot", client.build_page_body("autopilot", want=WANTED_ACTIONS)),
    "gallery": _build_place_request("/api/gallery", start=Client.choose_image, count=lambda _: GALLERY_TILES),
    "gallery_class": _build_gallery_request(lambda client: {"has": [client.choose_class()]}),
    "gallery_classes": _build_gallery_request(
        lambda client: {"open": client.choose_classes(2), "lacks": client.choose_classes(2)}
    ),
    "gallery_person": _build_gallery_request(
        lambda _: {"by": CLIENT_NAME, "source": "click", "from": "2020-01-01"}, sort="decided", down=True
    ),
    "gallery_incomplete": _build_gallery_request(
        lambda _: {"complete": False, "flagged": False}, sort="labels", down=True
    ),
    "gallery_captured": _build_gallery_request(lambda client: {"open": [client.choose_class()]}, sort="captured"),
    "gallery_name": _build_gallery_request(lambda client: {"folder": "made", "name": str(client.choose_image())[-3:]}),
    "gallery_probability": _build_gallery_request(
        lambda _: {"open": [3]}, sort="probability", down=True, **{"class": 3}
    ),
    "gallery_probability_other": lambda client: (
        "POST",
        "/api/gallery",
        {"sort": "probability", "class": client.choose_class(), "start": 0, "count": GALLERY_TILES},
    ),
    "gallery_like": _build_place_request(
        "/api/gallery",
        start=lambda _: 0,
        count=lambda _: GALLERY_TILES,
        sort=lambda _: "like",
        like=lambda client: [client.choose_image()],
    ),
    "gallery_scroll": _build_place_request(
        "/api/gallery", start=Client.choose_image, count=lambda _: GALLERY_TILES, version=lambda client: client.version
    ),
    "gallery_place": _build_place_request("/api/gallery/place", image=Client.choose_image, sort=lambda _: "decided"),
    "gallery_ids": _build_place_request(
        "/api/gallery/ids", first=lambda _: 0, last=lambda _: 4999, down=lambda _: True
    ),
    "find": lambda client: ("POST", "/api/find", {"text": str(client.choose_image())[-4:], "count": 20}),
    "classes": lambda client: ("POST", "/api/classes", {}),
    "examples": lambda client: ("POST", "/api/examples", {"class": client.choose_class()}),
    "items": lambda client: ("POST", "/api/items", {"images": [client.choose_image() for _ in range(8)]}),
    "recent": lambda client: ("POST", "/api/recent", {}),
    "history": lambda client: ("POST", "/api/history", {"image": client.choose_image()}),
    "decide": _build_label_request,
    "decide_batch": _build_batch_request,
    "decide_done": lambda client: (
        "POST",
        "/api/decisions",
        client.build_decision(action="done", source="click", image=client.choose_labeled_image()),
    ),
    "undo": _build_undo_request,
    "image": lambda client: ("GET", f"/api/image/{client.choose_file()}", None),
    "thumb": lambda client: ("GET", f"/api/thumb/{client.choose_file()}", None),
    "map": lambda client: ("GET", "/api/map", None),
    "map_colors": lambda client: (
        "GET",
        f"/api/map/colors?by=probability&class={client.choose_class()}",
        None,
    ),
    "map_select": lambda client: (
        "POST",
        "/api/map/select",
        {"polygon": [[0.4, 0.4], [0.6, 0.4], [0.6, 0.6], [0.4, 0.6]]},
    ),
}


def measure(images: int = 1_000_000, classes: int = 100, *, requests: int = 60) -> dict:
    """Measure the times of all routes in milliseconds, and the memory of the page process.

    Args:
        images: The number of images of the large project.
        classes: The number of classes of both projects.
        requests: Counted requests of each row, on each project.

    Returns:
        {"bench", "figures", "ratios"}: `<row>_<small or large>[_cpu]_<p50 or p95>_ms`, the same of the floor,
        megabytes, and the time of the worker's rankings; ratios of the large project over the small one.

    Raises:
        AnnotatorError: The answer of a route is wrong.
        DiskFull: The disk is full.
    """
    with scratch_folder() as folder, ExitStack() as stack:
        started = time.perf_counter()
        counts = {"small": min(SMALL_PROJECT_IMAGES, images), "large": images}
        projects = {size: make_bulk_project(folder / size, count, classes) for size, count in counts.items()}
        for size, project in projects.items():
            print_progress(f"features of {counts[size]:,} images")
            add_features(project.db, counts[size])
        figures = {"making_both_projects_seconds": round(time.perf_counter() - started, 1)}
        clients = {}
        for size, project in projects.items():
            page = stack.enter_context(serve_page(project.db))
            connection = http.client.HTTPConnection(LOCAL_ADDRESS, page.port, timeout=60)
            headers = build_request_headers(project.db.paths.project, page.address, CLIENT_NAME)
            clients[size] = Client(project, counts[size], classes, connection, headers, page.pid)
            # Of a page that has just started: later ones read only what has changed.
            figures[f"gallery_first_{size}_ms"] = round(clients[size].time_request("gallery")[0], 1)
            connection.close()  # opened again by the next request: the server ends one that is idle for long
            print_progress(f"gallery_first_{size}: {figures[f'gallery_first_{size}_ms']:.0f} ms")
        figures |= _measure_agreement(clients["large"])
        floor = stack.enter_context(serve_floor(projects["small"].db))
        times = _measure_times(clients, http.client.HTTPConnection(LOCAL_ADDRESS, floor.port, timeout=60), requests)
        figures |= _compute_percentiles(times)
        for size, client in clients.items():
            figures |= {f"page_memory_{size}_{kind}_mb": value for kind, value in _read_memory(client.pid).items()}
            figures[f"rankings_{size}_seconds"] = round(client.project.rankings_seconds, 2)
    figures |= {"images": images, "classes": classes, "requests": requests}
    ratios = {
        f"{row}_{name}_large_over_small": round(figures[f"{row}_large_{name}_ms"] / small, 2)
        for row in ROUTE_REQUESTS
        for name in ("p50", "p95", "cpu_p50", "cpu_p95")
        if (small := figures[f"{row}_small_{name}_ms"])
    }
    return {"bench": "store", "figures": figures, "ratios": ratios}


def _measure_agreement(client: Client) -> dict[str, float]:
    """Count the GALLERY_TILES first images of the Gallery that an exact search by features finds, too."""
    examples = [client.choose_image() for _ in range(SIMILARITY_EXAMPLES)]
    shares, took = [], []
    for example, exact in zip(examples, find_nearest_images(client.images, examples, GALLERY_TILES), strict=True):
        began = time.perf_counter()
        shown = client.send_request(
            "POST", "/api/gallery", {"sort": "like", "like": [example], "start": 0, "count": GALLERY_TILES}
        )
        took.append(1000 * (time.perf_counter() - began))
        shares.append(len({image["id"] for image in json.loads(shown)["images"]} & set(exact)) / len(exact))
    print_progress(f"gallery_like: {100 * float(np.mean(shares)):.1f} % as an exact search has it")
    return {
        "gallery_like_agreement_percent": round(100 * float(np.mean(shares)), 2),
        "gallery_like_least_agreement_percent": round(100 * min(shares), 2),
        "gallery_like_first_ms": round(took[0], 1),  # codes are read and checked
    }


def _measure_times(
    clients: dict[str, Client], floor: http.client.HTTPConnection, requests: int
) -> dict[tuple[str, str], list[float]]:
    """Return milliseconds by row and size; the projects and the floor take turns."""
    times: dict[tuple[str, str], list[float]] = {}
    for number in range(requests + WARM_UP):
        for row in ROUTE_REQUESTS:
            # The order alternates, so that neither always follows the other.
            for size in sorted(clients, reverse=bool(number % 2)):
                milliseconds, computed = clients[size].time_request(row)
                if number >= WARM_UP:
                    times.setdefault((row, size), []).append(milliseconds)
                    times.setdefault((row, f"{size}_cpu"), []).append(computed)
        started = time.perf_counter()
        floor.request("POST", "/nothing", "{}", {"content-type": "application/json"})
        floor.getresponse().read()
        if number >= WARM_UP:
            times.setdefault(("floor", ""), []).append(1000 * (time.perf_counter() - started))
    return times


def _compute_percentiles(times: dict[tuple[str, str], list[float]]) -> dict[str, float]:
    figures = {}
    for (row, size), values in times.items():
        name = f"{row}_{size}" if size else row
        figures |= {f"{name}_p{part}_ms": round(float(np.percentile(values, part)), 2) for part in (50, 95)}
        print_progress(f"{name}: " + ", ".join(f"p{part} {figures[f'{name}_p{part}_ms']:.1f} ms" for part in (50, 95)))
    return figures


def _read_core_seconds(pid: int) -> float:
    """Return the processor seconds of a process so far; 0 if they cannot be known."""
    if not sys.platform.startswith("linux"):
        return 0.0
    return time.clock_gettime((~pid << 3) | 2)  # the clock of another process, as clock_getcpuclockid(3) names it


def _read_memory(pid: int) -> dict[str, float]:
    """Return the megabytes of a process by kind; {} without /proc (macOS, Windows)."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    return {word: round(sizes[name] / 1024, 1) for name, word in MEMORY_KINDS.items()}

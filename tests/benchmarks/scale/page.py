"""The time of a large project's page in a server process of its own: until its first answer, and for one key."""

import http.client
import json
import time
from pathlib import Path

import numpy as np
from harness.bulk import BulkProject
from harness.child_processes import LOCAL_ADDRESS, serve_page

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.ui.access.access_keys import build_request_headers
from benchmarks.scale.process_memory import watch_memory
from benchmarks.store import CLIENT_NAME, WARM_UP, Client

KEY_ROWS = ("decide", "annotate", "image")
OTHER_ROWS = ("review", "grid_class", "gallery", "autopilot")
MAX_PHOTO_FILES, MAX_LABELED_IMAGES = 200, 5000
Figures = dict[str, float]


def measure_page(project: Path, classes: int, has_photos: bool, requests: int = 40) -> Figures:
    """Measure a server on a project, without a worker.

    Args:
        project: The project folder.
        classes: The number of classes.
        has_photos: Whether pictures can be requested.
        requests: Counted requests of each kind.

    Returns:
        Seconds from the start of the process to the first page with its first images, milliseconds of a key (its
        decision, the next images, a picture) and of the first and of later answers of other pages, and megabytes.

    Raises:
        AnnotatorError: An answer is wrong.
    """
    db = Database(project)
    count = db.value("SELECT count(*) FROM image")
    labeled = [row[0] for row in db.tuples("SELECT DISTINCT image_id FROM label LIMIT ?", [MAX_LABELED_IMAGES])]
    bulk = BulkProject(db, list(range(1, min(MAX_PHOTO_FILES, count) + 1)), labeled, 0.0)
    started = time.perf_counter()
    with serve_page(db) as page, watch_memory(page.pid) as memory:
        connection = http.client.HTTPConnection(LOCAL_ADDRESS, page.port, timeout=120)
        client = Client(
            bulk, count, classes, connection, build_request_headers(project, page.address, CLIENT_NAME), page.pid
        )
        _request_page(connection, client.headers)
        client.time_request("annotate")
        figures = {"seconds": time.perf_counter() - started}
        key = [row for row in KEY_ROWS if has_photos or row != "image"]
        first = {f"first_{row}_ms": client.time_request(row)[0] for row in OTHER_ROWS}
        times = {
            row: [client.time_request(row)[0] for _ in range(requests + WARM_UP)][WARM_UP:]
            for row in (*key, *OTHER_ROWS)
        }
        connection.close()
    times["key"] = np.sum([times[row] for row in key], axis=0).tolist()
    for row, taken in times.items():
        figures |= {f"{row}_p{part}_ms": float(np.percentile(taken, part)) for part in (50, 95)}
    return figures | first | memory.build_figures("page")


def _request_page(connection: http.client.HTTPConnection, headers: dict[str, str]) -> None:
    connection.request("GET", "/", headers={name: value for name, value in headers.items() if name != "content-type"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise AnnotatorError(f"GET / answered {answer.status}: {json.dumps(content[:200].decode(errors='replace'))}")

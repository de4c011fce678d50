"""The monitoring routes: readiness and Prometheus metrics, without personal data."""

import os
import shutil
import time
from collections.abc import Iterator

from anyio.to_thread import run_sync
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from annotator.errors import AnnotatorError
from annotator.settings import IMPORT_ANNOTATOR
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.labels import disagreed_cells, project_counts
from annotator.store.people import leases
from annotator.store.people.access_tokens import METRICS_RIGHT
from annotator.ui.access import served_project
from annotator.ui.access.middleware import METRICS_PATH, READY_PATH
from annotator.ui.shared.guard import NO_STORE_HEADERS, REQUEST_SECONDS, build_error_response, guard_program_route

MIN_FREE_BYTES = 100_000_000  # bytes of the disk, below which the server does not call itself ready


class ProjectCollector:
    """A project's metrics for prometheus_client, read at every collection."""

    def __init__(self, db: Database):
        self.db = db

    def collect(self) -> Iterator[Metric]:
        counts, worker = project_counts.count_images_by_stage(self.db), heartbeat.load_worker_state(self.db)
        images = GaugeMetricFamily("annotator_images", "Images of the project, by how far they are", labels=["stage"])
        for stage, number in counts.items():
            images.add_metric([stage], number)
        yield images
        labels = GaugeMetricFamily("annotator_labels", "Answered pairs of an image and a class", labels=["state"])
        for state, number in project_counts.count_labels_by_state(self.db).items():
            labels.add_metric([state], number)
        yield labels
        by_source = GaugeMetricFamily("annotator_decisions", "Decisions that hold, by source", labels=["source"])
        for source, number in project_counts.count_decisions_by_source(self.db).items():
            by_source.add_metric([source], number)
        yield by_source
        made = CounterMetricFamily("annotator_decisions_stored", "Decisions ever stored, taken back ones too")
        made.add_metric([], project_counts.count_decisions_after(self.db, 0))
        yield made
        people = set(project_counts.list_annotators(self.db)) - {IMPORT_ANNOTATOR}
        last = worker.progress_at or worker.heartbeat_at
        since = max(0.0, time.time() - last) if last else float("nan")
        for name, about, value in (
            ("annotator_annotators", "People with a decision that holds", len(people)),
            (
                "annotator_leases",
                "Images and pairs that a page has in hand",
                len(leases.load_leases_of_others(self.db, "")),
            ),
            ("annotator_disagreements", "Pairs that people disagree on", disagreed_cells.count(self.db)),
            ("annotator_worker_up", "1 while the worker works, perhaps slowly, else 0", int(worker.alive)),
            ("annotator_worker_silence_seconds", "Since the worker's last progress", since),
            ("annotator_disk_free_bytes", "Free where the project lies", _get_free_bytes(self.db)),
        ):
            yield GaugeMetricFamily(name, about, value=value)


async def metrics(request: Request, token: str) -> Response:
    """Handle GET: return the project's metrics (Prometheus exposition format 0.0.4)."""
    return Response(await run_sync(_build_metrics), media_type=CONTENT_TYPE_PLAIN_0_0_4, headers=NO_STORE_HEADERS)


async def ready(request: Request) -> Response:
    """Handle GET without token: return 200 if the server is ready, or 503 with the problem."""
    wrong = await run_sync(_find_readiness_problem)
    return PlainTextResponse(
        f"not ready: {wrong}\n" if wrong else "ready\n", 503 if wrong else 200, headers=NO_STORE_HEADERS
    )


async def _refuse_method(request: Request) -> Response:
    return build_error_response(405, f"Ask for figures with GET, not with {request.method}.", {"allow": "GET"})


ROUTES = [
    Route(METRICS_PATH, guard_program_route(metrics, METRICS_RIGHT), methods=["GET"]),
    Route(METRICS_PATH, _refuse_method, methods=["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    Route(READY_PATH, ready, methods=["GET"]),
]


def _build_metrics() -> bytes:
    registry = CollectorRegistry()
    registry.register(ProjectCollector(served_project.db()))
    registry.register(REQUEST_SECONDS)
    if os.name == "posix":
        ProcessCollector(registry=registry)
    return generate_latest(registry)


def _find_readiness_problem() -> str:
    try:
        project_counts.count_images_by_stage(served_project.db())
        return "the disk is full" if _get_free_bytes(served_project.db()) < MIN_FREE_BYTES else ""
    except (AnnotatorError, OSError):  # moved away, unmounted, damaged
        return "the project cannot be read"


def _get_free_bytes(db: Database) -> int:
    return shutil.disk_usage(db.paths.project).free

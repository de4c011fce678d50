"""The routes for monitoring: whether the server is ready, and its figures in the format of Prometheus.

Figures are read when they are asked for; a page never waits for them. Nothing names a person, an image or a class.
"""

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
from annotator.settings import IMPORTER
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.labels import counts as overview
from annotator.store.labels import disagreement as annotator_disagreement
from annotator.store.people import leases
from annotator.store.people.access_tokens import METRICS
from annotator.ui.access import context
from annotator.ui.access.middleware import METRICS_PATH, READY
from annotator.ui.routes.guard import FRESH, REQUEST_SECONDS, error, for_programs

LEAST_FREE = 100_000_000  # bytes of the disk, below which the server does not call itself ready


class ProjectFigures:
    """The figures of a project for a registry of prometheus_client; read anew at every collection."""

    def __init__(self, db: Database):
        self.db = db

    def collect(self) -> Iterator[Metric]:
        """Yield all figures; names end in their unit, as Prometheus asks."""
        counts, worker = overview.image_counts(self.db), heartbeat.worker_state(self.db)
        images = GaugeMetricFamily("annotator_images", "Images of the project, by how far they are", labels=["stage"])
        for stage, number in counts.items():
            images.add_metric([stage], number)
        yield images
        labels = GaugeMetricFamily("annotator_labels", "Answered pairs of an image and a class", labels=["state"])
        for state, number in overview.labels_by_state(self.db).items():
            labels.add_metric([state], number)
        yield labels
        by_source = GaugeMetricFamily("annotator_decisions", "Decisions that hold, by source", labels=["source"])
        for source, number in overview.decisions_by_source(self.db).items():
            by_source.add_metric([source], number)
        yield by_source
        made = CounterMetricFamily("annotator_decisions_stored", "Decisions ever stored, taken back ones too")
        made.add_metric([], overview.decisions_newer_than(self.db, 0))
        yield made
        people = set(overview.annotators(self.db)) - {IMPORTER}
        since = max(0.0, time.time() - worker.heartbeat_at) if worker.heartbeat_at else float("nan")
        for name, about, value in (
            ("annotator_annotators", "People with a decision that holds", len(people)),
            ("annotator_leases", "Images and pairs that a page has in hand", len(leases.leased_by_others(self.db, ""))),
            ("annotator_disagreements", "Pairs that people disagree on", annotator_disagreement.count(self.db)),
            ("annotator_worker_up", "1 while the worker reports, else 0", int(worker.alive)),
            ("annotator_worker_silence_seconds", "Since the worker's last report", since),
            ("annotator_disk_free_bytes", "Free where the project lies", _free(self.db)),
        ):
            yield GaugeMetricFamily(name, about, value=value)


async def metrics(request: Request, token: str) -> Response:
    """GET -> the figures as text (Prometheus, exposition format 0.0.4)."""
    return Response(await run_sync(_figures), media_type=CONTENT_TYPE_PLAIN_0_0_4, headers=FRESH)


async def ready(request: Request) -> Response:
    """GET, without a token -> 200 "ready", or 503 and what is wrong in a few words."""
    wrong = await run_sync(_not_ready)
    return PlainTextResponse(f"not ready: {wrong}\n" if wrong else "ready\n", 503 if wrong else 200, headers=FRESH)


async def _refused(request: Request) -> Response:
    return error(405, f"Ask for figures with GET, not with {request.method}.", {"allow": "GET"})


ROUTES = [
    Route(METRICS_PATH, for_programs(metrics, METRICS), methods=["GET"]),
    Route(METRICS_PATH, _refused, methods=["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    Route(READY, ready, methods=["GET"]),
]


def _figures() -> bytes:
    registry = CollectorRegistry()
    registry.register(ProjectFigures(context.db()))
    registry.register(REQUEST_SECONDS)
    if os.name == "posix":
        ProcessCollector(registry=registry)
    return generate_latest(registry)


def _not_ready() -> str:
    try:
        overview.image_counts(context.db())
        return "the disk is full" if _free(context.db()) < LEAST_FREE else ""
    except (AnnotatorError, OSError):  # moved away, unmounted, damaged
        return "the project cannot be read"


def _free(db: Database) -> int:
    return shutil.disk_usage(db.paths.project).free

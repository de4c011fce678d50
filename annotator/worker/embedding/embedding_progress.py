"""Embedding speed per machine and remaining time, for terminal and pages."""

import time
from collections import defaultdict, deque
from dataclasses import replace

from annotator.humanize import format_count
from annotator.progress_callbacks import StepCallback
from annotator.settings import HEARTBEAT_SECONDS
from annotator.store.database.database import Database
from annotator.store.networks import embedding_claim

WINDOW_SECONDS = 30.0  # over which a rate is taken


class EmbeddingProgress:
    """A counter of embedded images, which stores progress at most once per HEARTBEAT_SECONDS.

    Args:
        claim: Stored state of this process, which locks the project's embedding.
        before: Number of images embedded at the start.
        missing: Number of images to embed.
        on_step: Called with (title, done, of) for a progress bar.
    """

    def __init__(
        self,
        db: Database,
        claim: embedding_claim.EmbeddingState,
        before: int,
        missing: int,
        on_step: StepCallback,
    ):
        self._db, self._show = db, on_step
        self._state = replace(claim, done=before, of=before + missing)
        self._began = time.monotonic()
        self._recent: dict[str, deque[tuple[float, int]]] = defaultdict(deque)
        self._reported_at = 0.0
        self.images: dict[str, int] = defaultdict(int)  # machine -> images, from the beginning
        self.workers = 0  # the most at work at one time

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._began

    def add(self, node: str, images: int) -> None:
        self.images[node] += images
        self._recent[node].append((time.monotonic(), images))
        self._state = replace(self._state, done=self._state.done + images)

    def report(self, workers: int, note: str = "", *, immediately: bool = False) -> None:
        """Store and show the progress (`note`: reason for a delay)."""
        self.workers = max(self.workers, workers)
        seconds = time.monotonic()
        if not immediately and note == self._state.note and seconds - self._reported_at < HEARTBEAT_SECONDS:
            return
        self._reported_at = seconds
        nodes = tuple((node, round(self._compute_recent_rate(node), 2)) for node in self._recent)
        rate = sum(speed for _, speed in nodes)
        self._state = replace(
            self._state, heartbeat_at=time.time(), images_a_second=rate, workers=workers, nodes=nodes, note=note
        )
        embedding_claim.report(self._db, self._state)
        title = note or f"Embedding ({format_count(workers, 'worker')}, {rate:,.0f} images/s)"
        self._show(title, self._state.done, self._state.of)

    def compute_rates(self) -> dict[str, float]:
        """Return machine -> images per second over the whole run."""
        return {node: images / max(self.elapsed_seconds, 1e-9) for node, images in self.images.items()}

    def _compute_recent_rate(self, node: str) -> float:
        recent, seconds = self._recent[node], time.monotonic()
        while recent and seconds - recent[0][0] > WINDOW_SECONDS:
            recent.popleft()
        span = min(WINDOW_SECONDS, seconds - self._began)
        return sum(images for _, images in recent) / max(span, 0.1)

"""Project progress, in one definition and wording for all pages and commands.

A project is finished when annotators have answered every cell (image and class), including as unsure. Other resolved
cells are counted separately. Archived classes and excluded images have no cells, but images with missing files do.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from annotator.humanize import format_count, format_duration_range, format_percent
from annotator.snapshot.closing.closing_plan import load_plan
from annotator.snapshot.time_model import estimate_times, load_timed_answers
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import excluded_images
from annotator.store.labels import auto_accepted, implied_cells, project_counts
from spmll.statistics.time_regression import PartTimes

GRID_TILES, CHANGED_TILES = 24, 2  # of the grid that the times of audits are computed from
PACE_CACHE_SECONDS = 60.0  # for which a pace is kept, so that it is not fitted again at every answer
MAX_CACHED_PACES = 32  # people whose pace is kept


@dataclass(frozen=True)
class Progress:
    """The progress of a project in counts of pairs (one class on one image), and the time left."""

    # pairs answered by annotators, including unsure
    pairs_answered: int
    pairs: int
    # pairs_accepted, pairs_ruled_out, pairs_implied: unanswered pairs resolved by the model, as absent everywhere, or
    # by implication, disjoint
    pairs_accepted: int
    images_complete: int
    images_labeled: int
    images: int
    # seconds of the plan that closes `pairs_open` (closing_plan.py), None without timings
    seconds_left: float | None
    pairs_ruled_out: int = 0
    pairs_implied: int = 0
    # low and high end of these seconds, as a 90% range
    seconds_range: tuple[float, float] | None = None
    # grids of that plan
    grids_left: int = 0

    @property
    def pairs_open(self) -> int:
        settled = self.pairs_answered + self.pairs_accepted + self.pairs_ruled_out + self.pairs_implied
        return max(0, self.pairs - settled)

    @property
    def share(self) -> float:
        """Return the answered fraction of all pairs, 0.0 without any."""
        return self.pairs_answered / self.pairs if self.pairs else 0.0

    def sentence(self) -> str:
        """Return the progress in words, without a period."""
        return self.template().format(
            pairs_answered=f"{self.pairs_answered:,}", images_complete=f"{self.images_complete:,}"
        )

    def template(self) -> str:
        """Return the progress in words, with the placeholders {pairs_answered} and {images_complete}."""
        pairs = f"{{pairs_answered}} of {self.pairs:,} {'pair' if self.pairs == 1 else 'pairs'} answered"
        images = f"{{images_complete}} of {self.images:,} {'image' if self.images == 1 else 'images'} complete"
        parts = [pairs, images]
        if self.pairs_accepted:
            parts.append(f"{self.pairs_accepted:,} accepted by the model")
        if self.pairs_ruled_out:
            parts.append(f"{self.pairs_ruled_out:,} ruled out after a sample")
        if self.pairs_implied:
            parts.append(f"{self.pairs_implied:,} implied by answers")
        if self.seconds_left is not None and self.pairs_open:
            low, high = self.seconds_range or (self.seconds_left, self.seconds_left)
            time_left = f"about {format_duration_range(low, high)}"
            grids = format_count(self.grids_left, "grid")
            parts.append(f"{grids} to go, {time_left}" if self.grids_left else f"{time_left} to go")
        return " · ".join(parts)

    def percent(self) -> str:
        """Format the answered share in percent, 100% only when finished."""
        return format_percent(self.pairs_answered, self.pairs)


def load_progress(db: Database, annotator: str = "", counts: Mapping[str, int] | None = None) -> Progress:
    """Return the progress of a project, with the time left at the pace of one annotator, or of all ("")."""
    with db.reading():
        counts = project_counts.count_images_by_stage(db) if counts is None else counts
        pairs = counts["all"] * classes.count_classes(db)
        answered = sum(project_counts.count_labels_by_state(db).values())
        accepted, ruled_out = sum(auto_accepted.count_accepted(db).values()), auto_accepted.count_ruled_out(db)
        follow = sum(implied_cells.count_by_state(db).values())
        aside = excluded_images.count_settled_cells(db)
    progress = Progress(
        pairs_answered=max(0, answered - aside[0]),
        pairs=pairs,
        pairs_accepted=max(0, accepted - aside[1]),
        images_complete=counts["complete"],
        images_labeled=counts["all"] - counts["without_decision"],
        images=counts["all"],
        seconds_left=None,
        pairs_ruled_out=max(0, ruled_out - aside[2]),
        pairs_implied=max(0, follow - aside[3]),
    )
    times = load_pace(db, annotator)
    if times is None:
        return progress
    plan = load_plan(db, open_cells=progress.pairs_open)
    low, middle, high = plan.estimate_range(times)
    return replace(progress, seconds_left=middle, seconds_range=(low, high), grids_left=int(plan.grids.sum()))


def load_pace(db: Database, annotator: str) -> PartTimes | None:
    """Return the times of one annotator with draws, of all annotators if this one has none, or None without any."""

    def fit() -> PartTimes | None:
        answers = load_timed_answers(db, annotator) or load_timed_answers(db, "")
        return estimate_times(answers, draws=True) if answers else None

    return db.caches.get("pace", (annotator, int(time.monotonic() / PACE_CACHE_SECONDS)), fit, MAX_CACHED_PACES)

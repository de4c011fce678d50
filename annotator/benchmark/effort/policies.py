"""Ways to work through a project, each a generator of actions; POLICIES is the table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from annotator.benchmark import pace
from annotator.benchmark.effort.changed_constants import changed, changes
from annotator.benchmark.effort.session import NAME, Session
from annotator.benchmark.harness.processes import say
from annotator.queues import annotate, event_tiles, grid
from annotator.queues.autopilot import planner
from annotator.queues.autopilot.finishing import EXTRAS
from annotator.records import PRESENT, Filter, Wanted, WantedActions, WantedGrids
from annotator.snapshot.guesses import LIKELY
from annotator.snapshot.snapshot import read_snapshot
from annotator.snapshot.time_model import TESTS
from annotator.store.events import stored as stored_events
from annotator.store.labels import cells
from annotator.store.labels.audits import OPEN
from annotator.store.networks.adapted import Adapted
from annotator.store.people import speed_tests
from models.query_strategies import order

HOLDER = "bench"
GRID = 24
FIRST_CLICKS = 0.05  # of the images, before grids and reviews begin
SIZES = (12, 24, 48, 96)  # of a grid, that an expert chooses from
ADAPTS_AT = 0.15  # of the form's actions; where an adapted network cannot be judged yet, again a third of that later
SURE = 1e-6  # and 1 - SURE bound the probabilities that an expert corrects
AT_ONCE = 10  # images taken from the order of a strategy before it is computed again


@dataclass(frozen=True)
class Policy:
    """A way to work through a project.

    Attributes:
        about: A description in one line.
        learns: Whether a model is trained.
        follows: Whether the next action depends on the newest answer; otherwise the model is updated only when the
            curve is measured.
        settings: Names in SETTINGS that are all played in place of this policy; the best of them counts, by hindsight.
        on_request: Whether it takes so long that it is only played if it is named.
        timed: Whether what it asks for depends on how long the person's answers take.
    """

    about: str
    steps: Callable[[Session], Iterator[None]]
    learns: bool = True
    follows: bool = True
    settings: tuple[str, ...] = ()
    on_request: bool = False
    timed: bool = False


@dataclass(frozen=True)
class Mixture:
    """The settings of a mixture: clicks on a share `first` of the images, at least 20, then grids of `size` tiles.

    Shares `clicks` and `whole` of the actions after that are single clicks and whole images, on random images without a
    known positive as long as any are left.
    """

    first: float
    clicks: float
    whole: float
    size: int

    def __str__(self) -> str:
        return (
            f"{100 * self.first:.0f} % first clicks, {100 * self.clicks:.0f} % clicks, {100 * self.whole:.0f} % whole "
            f"images, grids of {self.size}"
        )


def _form(session: Session) -> Iterator[None]:
    for image_id in session.random_images():
        session.form(image_id)
        yield


def _clicks(session: Session, share: float = 1.0) -> Iterator[None]:
    for image_id in session.random_images()[: max(20, round(share * len(session.image_ids)))]:
        session.click(image_id)
        yield


def _grids(session: Session) -> Iterator[None]:
    yield from _clicks(session, FIRST_CLICKS)
    while _best_grid(session, GRID):
        yield


def _best_grid(session: Session, size: int) -> bool:
    """Answer the next grid of the class that the engine chooses; return False if no cell is open."""
    items = grid.next_grids(session.db, WantedGrids(HOLDER, NAME, None, size, (), 1)).items
    for grid_ in items:
        ids, chances = [tile.image.id for tile in grid_.tiles], [tile.probability for tile in grid_.tiles]
        session.grid(grid_.class_id, ids, chances, grid_.run_id, grid_.start == "yes")
    return bool(items)


def _mixture(mixture: Mixture) -> Callable[[Session], Iterator[None]]:
    """Return the steps of a mixture: each action is of the kind that lags furthest behind its share."""
    shares = {"grid": 1 - mixture.clicks - mixture.whole, "click": mixture.clicks, "whole": mixture.whole}

    def steps(session: Session) -> Iterator[None]:
        yield from _clicks(session, mixture.first)
        due, row = dict.fromkeys(shares, 0.0), None
        while True:
            due = {kind: lag + shares[kind] for kind, lag in due.items()}
            kind = max(due, key=lambda kind: due[kind])
            due[kind] -= 1
            if kind != "grid":
                row = _row_without_positive(session)
            if kind == "grid" or row is None:
                if not _best_grid(session, mixture.size):
                    return
            elif kind == "click":
                open_ = session.labels()[row] == OPEN
                session.click(int(session.image_ids[row]), session.class_ids[open_].tolist())
            else:
                chances = session.chances()
                _whole(session, int(session.image_ids[row]), None if chances is None else chances[row])
            yield

    return steps


def _row_without_positive(session: Session) -> int | None:
    """Return a random image with an open class and no known positive; None if none is left."""
    labels = session.labels()
    rows = np.flatnonzero((labels == OPEN).any(1) & ~(labels == PRESENT).any(1))
    return int(session.chance.choice(rows)) if len(rows) else None


def _expert_grids(session: Session) -> Iterator[None]:
    yield from _clicks(session, FIRST_CLICKS)
    while grid_ := _expert_grid(session):
        session.grid(*grid_)
        yield


def _expert_grid(session: Session) -> tuple[int, list[int], list[float | None], int | None, bool] | None:
    """Return the grid (class and size) with the most expected positives a second; None if no positive is left.

    The choice knows exactly how many positives each class has among its open cells. Of single cells it knows no more
    than the model: the model's probabilities, shifted in log odds until they add up to that number.
    """
    is_open, chances, snapshot = session.labels() == OPEN, session.chances(), read_snapshot(session.db)
    best_rate, best = 0.0, None
    for column, class_id in enumerate(session.class_ids.tolist()):
        rows = np.flatnonzero(is_open[:, column])
        left = int(session.truth[rows, column].sum())
        if not left:
            continue
        scores = np.full(len(rows), np.nan) if chances is None else chances[rows, column]
        likely = adding_up(np.nan_to_num(scores), left)
        ranked = np.argsort(-likely, kind="stable")
        for size in SIZES:
            tiles = ranked[:size]
            positives = float(likely[tiles].sum())
            rate = positives / session.time_model.grid(len(tiles), min(positives, len(tiles) - positives))
            if rate > best_rate:
                shown = [None if np.isnan(score) else float(score) for score in scores[tiles]]
                run_id = snapshot.run.id if snapshot and shown[0] is not None else None
                image_ids = session.image_ids[rows[tiles]].tolist()
                best_rate, best = rate, (class_id, image_ids, shown, run_id, positives > len(tiles) / 2)
    return best


def adding_up(chances: np.ndarray, total: int) -> np.ndarray:
    """Shift the log odds of probabilities (n,) by one number such that they add up to `total`, which is at most n."""
    bounded = np.clip(chances.astype(np.float64), SURE, 1 - SURE)
    odds, low, high = np.log(bounded / (1 - bounded)), -40.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        if (1 / (1 + np.exp(-odds - middle))).sum() < total:
            low = middle
        else:
            high = middle
    return 1 / (1 + np.exp(-odds - high))


def _reviews(session: Session) -> Iterator[None]:
    yield from _clicks(session, FIRST_CLICKS)
    low = LIKELY
    while low > 0.001:
        wanted = Wanted("review", HOLDER, NAME, (), 1, Filter(low=low))
        items = annotate.next_work(session.db, wanted).items
        if not items:
            low /= 2  # nothing is left above it: lower the threshold
            continue
        chips = items[0].suggestions
        session.chips(
            items[0].image.id, [chip.class_id for chip in chips], [chip.probability for chip in chips], chips[0].run_id
        )
        yield


def _whole_images(name: str) -> Callable[[Session], Iterator[None]]:
    """Return steps that answer whole images, every open class of each, in the order of a query strategy."""

    def steps(session: Session) -> Iterator[None]:
        while True:
            labels, chances = session.labels(), session.chances()
            left = np.flatnonzero((labels == OPEN).any(1))
            if not len(left):
                return
            known = np.where(labels == OPEN, 0, labels).astype(np.int8)
            if name == "random" or chances is None:
                rows = session.chance.permutation(left)
            else:
                rows = order(name, None, chances, known, left, session.chance).rows
            for row in rows[:AT_ONCE].tolist():
                _whole(session, int(session.image_ids[row]), None if chances is None else chances[row])
                yield

    return steps


def _whole(session: Session, image_id: int, chances: np.ndarray | None) -> None:
    answered = cells.answered(session.db, [image_id]).get(image_id, {})
    class_ids = [class_id for class_id in session.class_ids.tolist() if class_id not in answered]
    scores = dict.fromkeys(class_ids)
    if chances is not None:
        scores |= {
            class_id: float(chances[session.column(class_id)])
            for class_id in class_ids
            if not np.isnan(chances[session.column(class_id)])
        }
    preset = [class_id for class_id, chance in scores.items() if chance is not None and chance >= LIKELY]
    session.image(image_id, class_ids, preset, [scores[class_id] for class_id in class_ids], None)


def _autopilot(session: Session) -> Iterator[None]:
    while items := planner.next_actions(session.db, WantedActions(HOLDER, NAME, (), 1, extras=EXTRAS)).items:
        action = items[0]
        if action.grid:
            grid_ = action.grid
            ids, chances = [tile.image.id for tile in grid_.tiles], [tile.probability for tile in grid_.tiles]
            others = {tile.image.id: [image_id for image_id, _, _ in tile.others] for tile in grid_.tiles}
            session.grid(grid_.class_id, ids, chances, grid_.run_id, grid_.start == "yes", action.source, others)
        elif action.kind == "click":
            session.click(action.item.image.id, [class_id for class_id, _ in action.scores] or None)
        else:
            scores = dict(action.scores)
            answered = {label.class_id for label in action.item.labels}
            class_ids = list(scores) or [
                class_id for class_id in session.class_ids.tolist() if class_id not in answered
            ]
            chances = [scores.get(class_id) for class_id in class_ids]
            snapshot = read_snapshot(session.db)
            run_id = snapshot.run.id if snapshot else None
            image_id = action.item.image.id
            others = stored_events.others_of(session.db, [image_id], event_tiles.MOST).get(image_id, [])
            session.image(image_id, class_ids, list(action.preset), chances, run_id, action.source, others)
        yield


def _known_autopilot(session: Session) -> Iterator[None]:
    """Play Autopilot after the person has taken the speed test so often that their times are known."""
    tested = pace.log(session.chance, session.time_model, TESTS, classes=len(session.class_ids))
    for task, answer in enumerate(tested):
        speed_tests.store(session.db, NAME, (1, task), answer)
    yield from _autopilot(session)


def _changed_autopilot(name: str, value: object) -> Callable[[Session], Iterator[None]]:
    def steps(session: Session) -> Iterator[None]:
        with changed(name, value):
            yield from _autopilot(session)

    return steps


def _autopilot_adapting(session: Session) -> Iterator[None]:
    share = ADAPTS_AT * (session.truth.sum() + len(session.image_ids))
    due, made = share, None
    for _ in _autopilot(session):
        yield
        if made is None and session.spent.actions >= due:
            made, due = session.adapt(), due + share / 3
            say(_adapting_in_words(session, made))


def _adapting_in_words(session: Session, made: Adapted | None) -> str:
    after = f"after {session.spent.actions:,} actions"
    if made is None:
        return f"{after} an adapted network could not be judged yet"
    return (
        f"{after} {made.name} is {'taken' if made.is_better else 'not taken'}: mean AP {made.ap_before:.3f} -> "
        f"{made.ap_after:.3f} ({made.ap_low:+.3f} to {made.ap_high:+.3f}), log loss {made.log_loss_before:.3f} -> "
        f"{made.log_loss_after:.3f}, {made.judged_classes} of {made.classes} classes; fitted to {made.answers:,} "
        f"answers about {made.images:,} images in {made.seconds / 60:.1f} minutes"
    )


MIXTURES = [
    Mixture(first, clicks, whole, size)
    for first in (0.02, 0.1)
    for clicks, whole in ((0.0, 0.0), (0.0, 0.15), (0.15, 0.0))
    for size in (24, 48)
]
_MIXTURES = {str(mixture): Policy(str(mixture), _mixture(mixture)) for mixture in MIXTURES}
_CHANGED = {
    f"{name} = {value}": Policy(f"Autopilot with {name} = {value}", _changed_autopilot(name, value), timed=True)
    for name, value in changes()
}
SETTINGS = _MIXTURES | _CHANGED
POLICIES = {
    "form": Policy("every image in a form: each positive ticked, then submit", _form, learns=False),
    "one-click-then-model": Policy("one click on every image, the model fills in the rest", _clicks, follows=False),
    "complete-fewer-images": Policy("forms for some images, the model does the others", _form, follows=False),
    "grid-only": Policy("one click on 5 % of the images, then grids of 24 of the best class", _grids),
    "expert-grids": Policy(
        "the same clicks, then the class and size of grid with most positives a second, by true counts of each class",
        _expert_grids,
        timed=True,
    ),
    "review-only": Policy("one click on 5 % of the images, then suggestions one by one", _reviews),
    "random": Policy(
        "whole images in random order, likely classes set beforehand", _whole_images("random"), follows=False
    ),
    "uncertainty": Policy(
        "the same, images first of which the model is least sure", _whole_images("uncertainty"), follows=False
    ),
    "best-mixture": Policy(
        f"the best of {len(_MIXTURES)} fixed mixtures of clicks, whole images and grids, chosen by hindsight",
        lambda _: iter(()),
        settings=tuple(_MIXTURES),
        on_request=True,
    ),
    "autopilot": Policy("whatever is expected to finish most labels a second", _autopilot, timed=True),
    "autopilot-known": Policy(
        f"the same for a person whose times are known from the start, from {TESTS} tasks of the speed test",
        _known_autopilot,
        on_request=True,
        timed=True,
    ),
    "autopilot-adapting": Policy(
        f"the same; after {100 * ADAPTS_AT:.0f} % of the form's actions the network is adapted, and used if better",
        _autopilot_adapting,
        on_request=True,
        timed=True,
    ),
    "changed-constants": Policy(
        f"Autopilot with one of its constants changed, in {len(_CHANGED)} ways, the best chosen by hindsight",
        lambda _: iter(()),
        settings=tuple(_CHANGED),
        on_request=True,
        timed=True,
    ),
}

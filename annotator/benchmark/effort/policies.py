"""Policies of labeling a project, as generators of actions in the table POLICIES."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from annotator.benchmark.effort.changed_constants import iterate_changes, replace_constant
from annotator.benchmark.effort.session import ANNOTATOR_NAME, Session
from annotator.benchmark.scratch import print_progress
from annotator.benchmark.simulated_people import draw_answer_log
from annotator.queues import event_tiles, grid_queue, image_queue
from annotator.queues.autopilot import planner
from annotator.queues.autopilot.complete_project import EXTRA_KINDS
from annotator.records import PRESENT, SuggestionFilter, WantedActions, WantedGrids, WantedImages
from annotator.snapshot.preset_threshold import MIN_PRESET_PROBABILITY
from annotator.snapshot.snapshot import read_snapshot
from annotator.snapshot.time_model import MAX_TESTS
from annotator.store.events import stored_events
from annotator.store.labels import label_cells
from annotator.store.labels.audits import OPEN
from annotator.store.networks.adapted_networks import AdaptedNetwork
from annotator.store.people import speed_tests
from spmll.query_strategies import order_candidates

LEASE_HOLDER = "bench"
GRID_TILES = 24
FIRST_CLICKS_SHARE = 0.05  # of the images, before grids and reviews begin
EXPERT_GRID_SIZES = (12, 24, 48, 96)  # of a grid, that an expert chooses from
# of the form's actions; where an adapted network cannot be judged yet, again a third of that later
ADAPTATION_SHARE = 0.15
PROBABILITY_BOUND = 1e-6  # and 1 - PROBABILITY_BOUND bound the probabilities that an expert corrects
IMAGES_PER_ORDER = 10  # images taken from the order of a strategy before it is computed again


@dataclass(frozen=True)
class Policy:
    """A policy of labeling a project, an entry of POLICIES."""

    about: str
    steps: Callable[[Session], Iterator[None]]
    learns: bool = True
    # each action depends on the newest answer. Otherwise the model updates only when measured
    follows: bool = True
    # names in SETTING_POLICIES that are played instead. The best in hindsight counts
    settings: tuple[str, ...] = ()
    # slow, so only played if named
    on_request: bool = False
    depends_on_times: bool = False


@dataclass(frozen=True)
class Mixture:
    """The settings of a policy that mixes grids, clicks and whole images.

    Clicks on `first_share` of the images come first. Then `click_share` and `whole_share` of the questions are
    clicks and whole images, preferably without a known positive. The others are grids of `size` tiles.
    """

    first_share: float
    click_share: float
    whole_share: float
    size: int

    def __str__(self) -> str:
        return (
            f"{100 * self.first_share:.0f} % first clicks, {100 * self.click_share:.0f} % clicks, "
            f"{100 * self.whole_share:.0f} % whole images, grids of {self.size}"
        )


def _fill_forms(session: Session) -> Iterator[None]:
    for image_id in session.shuffle_images():
        session.fill_form(image_id)
        yield


def _click_images(session: Session, share: float = 1.0) -> Iterator[None]:
    for image_id in session.shuffle_images()[: max(20, round(share * len(session.image_ids)))]:
        session.click_image(image_id)
        yield


def _answer_grids(session: Session) -> Iterator[None]:
    yield from _click_images(session, FIRST_CLICKS_SHARE)
    while _answer_best_grid(session, GRID_TILES):
        yield


def _answer_best_grid(session: Session, size: int) -> bool:
    """Answer the grid that the project proposes next. Returns False if every cell is answered."""
    items = grid_queue.lease_next_grids(session.db, WantedGrids(LEASE_HOLDER, ANNOTATOR_NAME, None, size, (), 1)).items
    for grid_ in items:
        ids, chances = [tile.image.id for tile in grid_.tiles], [tile.probability for tile in grid_.tiles]
        session.answer_grid(grid_.class_id, ids, chances, grid_.run_id, grid_.start == "yes")
    return bool(items)


def _make_mixture_steps(mixture: Mixture) -> Callable[[Session], Iterator[None]]:
    """Return a generator of questions, each of the kind that is farthest below its share in the mixture."""
    shares = {
        "grid": 1 - mixture.click_share - mixture.whole_share,
        "click": mixture.click_share,
        "whole": mixture.whole_share,
    }

    def steps(session: Session) -> Iterator[None]:
        yield from _click_images(session, mixture.first_share)
        due, row = dict.fromkeys(shares, 0.0), None
        while True:
            due = {kind: lag + shares[kind] for kind, lag in due.items()}
            kind = max(due, key=lambda kind: due[kind])
            due[kind] -= 1
            if kind != "grid":
                row = _choose_row_without_positive(session)
            if kind == "grid" or row is None:
                if not _answer_best_grid(session, mixture.size):
                    return
            elif kind == "click":
                open_ = session.load_labels()[row] == OPEN
                session.click_image(int(session.image_ids[row]), session.class_ids[open_].tolist())
            else:
                chances = session.load_chances()
                _answer_whole_image(session, int(session.image_ids[row]), None if chances is None else chances[row])
            yield

    return steps


def _choose_row_without_positive(session: Session) -> int | None:
    labels = session.load_labels()
    rows = np.flatnonzero((labels == OPEN).any(1) & ~(labels == PRESENT).any(1))
    return int(session.chance.choice(rows)) if len(rows) else None


def _answer_expert_grids(session: Session) -> Iterator[None]:
    yield from _click_images(session, FIRST_CLICKS_SHARE)
    while grid_ := _choose_expert_grid(session):
        session.answer_grid(*grid_)
        yield


def _choose_expert_grid(session: Session) -> tuple[int, list[int], list[float | None], int | None, bool] | None:
    """Return the grid with most expected positives per second, for a person who knows the true class totals."""
    is_open, chances, snapshot = session.load_labels() == OPEN, session.load_chances(), read_snapshot(session.db)
    best_rate, best = 0.0, None
    for column, class_id in enumerate(session.class_ids.tolist()):
        rows = np.flatnonzero(is_open[:, column])
        left = int(session.truth[rows, column].sum())
        if not left:
            continue
        scores = np.full(len(rows), np.nan) if chances is None else chances[rows, column]
        likely = shift_to_total(np.nan_to_num(scores), left)
        ranked = np.argsort(-likely, kind="stable")
        for size in EXPERT_GRID_SIZES:
            tiles = ranked[:size]
            positives = float(likely[tiles].sum())
            rate = positives / session.time_model.estimate_grid_seconds(
                len(tiles), min(positives, len(tiles) - positives)
            )
            if rate > best_rate:
                shown = [None if np.isnan(score) else float(score) for score in scores[tiles]]
                run_id = snapshot.run.id if snapshot and shown[0] is not None else None
                image_ids = session.image_ids[rows[tiles]].tolist()
                best_rate, best = rate, (class_id, image_ids, shown, run_id, positives > len(tiles) / 2)
    return best


def shift_to_total(chances: np.ndarray, total: int) -> np.ndarray:
    """Shift the log odds of probabilities (n,) by one constant, so that the probabilities sum to `total`."""
    bounded = np.clip(chances.astype(np.float64), PROBABILITY_BOUND, 1 - PROBABILITY_BOUND)
    odds, low, high = np.log(bounded / (1 - bounded)), -40.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        if (1 / (1 + np.exp(-odds - middle))).sum() < total:
            low = middle
        else:
            high = middle
    return 1 / (1 + np.exp(-odds - high))


def _review_suggestions(session: Session) -> Iterator[None]:
    yield from _click_images(session, FIRST_CLICKS_SHARE)
    low = MIN_PRESET_PROBABILITY
    while low > 0.001:
        wanted = WantedImages("review", LEASE_HOLDER, ANNOTATOR_NAME, (), 1, SuggestionFilter(low=low))
        items = image_queue.lease_next_work(session.db, wanted).items
        if not items:
            low /= 2  # nothing is left above it: lower the threshold
            continue
        chips = items[0].suggestions
        session.answer_suggestions(
            items[0].image.id, [chip.class_id for chip in chips], [chip.probability for chip in chips], chips[0].run_id
        )
        yield


def _make_whole_image_steps(name: str) -> Callable[[Session], Iterator[None]]:
    def steps(session: Session) -> Iterator[None]:
        while True:
            labels, chances = session.load_labels(), session.load_chances()
            left = np.flatnonzero((labels == OPEN).any(1))
            if not len(left):
                return
            known = np.where(labels == OPEN, 0, labels).astype(np.int8)
            if name == "random" or chances is None:
                rows = session.chance.permutation(left)
            else:
                rows = order_candidates(name, None, chances, known, left, session.chance).rows
            for row in rows[:IMAGES_PER_ORDER].tolist():
                _answer_whole_image(session, int(session.image_ids[row]), None if chances is None else chances[row])
                yield

    return steps


def _answer_whole_image(session: Session, image_id: int, chances: np.ndarray | None) -> None:
    answered = label_cells.load_answered_cells(session.db, [image_id]).get(image_id, {})
    class_ids = [class_id for class_id in session.class_ids.tolist() if class_id not in answered]
    scores = dict.fromkeys(class_ids)
    if chances is not None:
        scores |= {
            class_id: float(chances[session.find_column(class_id)])
            for class_id in class_ids
            if not np.isnan(chances[session.find_column(class_id)])
        }
    preset = [
        class_id for class_id, chance in scores.items() if chance is not None and chance >= MIN_PRESET_PROBABILITY
    ]
    session.answer_image(image_id, class_ids, preset, [scores[class_id] for class_id in class_ids], None)


def _follow_autopilot(session: Session) -> Iterator[None]:
    while items := planner.lease_next_actions(
        session.db, WantedActions(LEASE_HOLDER, ANNOTATOR_NAME, (), 1, extras=EXTRA_KINDS)
    ).items:
        action = items[0]
        if action.grid:
            grid_ = action.grid
            ids, chances = [tile.image.id for tile in grid_.tiles], [tile.probability for tile in grid_.tiles]
            others = {tile.image.id: [image_id for image_id, _, _ in tile.others] for tile in grid_.tiles}
            session.answer_grid(grid_.class_id, ids, chances, grid_.run_id, grid_.start == "yes", action.source, others)
        elif action.kind == "click":
            session.click_image(action.item.image.id, [class_id for class_id, _ in action.scores] or None)
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
            others = stored_events.find_open_siblings(session.db, [image_id], event_tiles.MAX_IMAGES_PER_TILE).get(
                image_id, []
            )
            session.answer_image(image_id, class_ids, list(action.preset), chances, run_id, action.source, others)
        yield


def _follow_known_autopilot(session: Session) -> Iterator[None]:
    tested = draw_answer_log(session.chance, session.time_model, MAX_TESTS, classes=len(session.class_ids))
    for task, answer in enumerate(tested):
        speed_tests.store(session.db, ANNOTATOR_NAME, (1, task), answer)
    yield from _follow_autopilot(session)


def _make_changed_steps(name: str, value: object) -> Callable[[Session], Iterator[None]]:
    def steps(session: Session) -> Iterator[None]:
        with replace_constant(name, value):
            yield from _follow_autopilot(session)

    return steps


def _follow_adapting_autopilot(session: Session) -> Iterator[None]:
    share = ADAPTATION_SHARE * (session.truth.sum() + len(session.image_ids))
    due, made = share, None
    for _ in _follow_autopilot(session):
        yield
        if made is None and session.spent.actions >= due:
            made, due = session.adapt_network(), due + share / 3
            print_progress(_describe_adaptation(session, made))


def _describe_adaptation(session: Session, network: AdaptedNetwork | None) -> str:
    after = f"after {session.spent.actions:,} actions"
    if network is None:
        return f"{after} an adapted network could not be judged yet"
    return (
        f"{after} {network.name} is {'taken' if network.is_better else 'not taken'}: mean AP {network.ap_before:.3f} "
        f"-> {network.ap_after:.3f} ({network.ap_low:+.3f} to {network.ap_high:+.3f}), log loss "
        f"{network.log_loss_before:.3f} -> {network.log_loss_after:.3f}, {network.judged_classes} of {network.classes} "
        f"classes; fitted to {network.answers:,} answers about {network.images:,} images in {network.seconds / 60:.1f} "
        "minutes"
    )


TRIED_MIXTURES = [
    Mixture(first, clicks, whole, size)
    for first in (0.02, 0.1)
    for clicks, whole in ((0.0, 0.0), (0.0, 0.15), (0.15, 0.0))
    for size in (24, 48)
]
_MIXTURE_POLICIES = {str(mixture): Policy(str(mixture), _make_mixture_steps(mixture)) for mixture in TRIED_MIXTURES}
_CHANGED_POLICIES = {
    f"{name} = {value}": Policy(
        f"Autopilot with {name} = {value}", _make_changed_steps(name, value), depends_on_times=True
    )
    for name, value in iterate_changes()
}
SETTING_POLICIES = _MIXTURE_POLICIES | _CHANGED_POLICIES
POLICIES = {
    "form": Policy("every image in a form: each positive ticked, then submit", _fill_forms, learns=False),
    "one-click-then-model": Policy(
        "one click on every image, the model fills in the rest", _click_images, follows=False
    ),
    "complete-fewer-images": Policy("forms for some images, the model does the others", _fill_forms, follows=False),
    "grid-only": Policy("one click on 5 % of the images, then grids of 24 of the best class", _answer_grids),
    "expert-grids": Policy(
        "the same clicks, then the class and size of grid with most positives a second, by true counts of each class",
        _answer_expert_grids,
        depends_on_times=True,
    ),
    "review-only": Policy("one click on 5 % of the images, then suggestions one by one", _review_suggestions),
    "random": Policy(
        "whole images in random order, likely classes set beforehand", _make_whole_image_steps("random"), follows=False
    ),
    "uncertainty": Policy(
        "the same, images first of which the model is least sure", _make_whole_image_steps("uncertainty"), follows=False
    ),
    "best-mixture": Policy(
        f"the best of {len(_MIXTURE_POLICIES)} fixed mixtures of clicks, whole images and grids, chosen by hindsight",
        lambda _: iter(()),
        settings=tuple(_MIXTURE_POLICIES),
        on_request=True,
    ),
    "autopilot": Policy(
        "whatever is expected to finish most labels a second", _follow_autopilot, depends_on_times=True
    ),
    "autopilot-known": Policy(
        f"the same for a person whose times are known from the start, from {MAX_TESTS} tasks of the speed test",
        _follow_known_autopilot,
        on_request=True,
        depends_on_times=True,
    ),
    "autopilot-adapting": Policy(
        f"the same; after {100 * ADAPTATION_SHARE:.0f} % of the form's actions the network is adapted, and used if "
        "better",
        _follow_adapting_autopilot,
        on_request=True,
        depends_on_times=True,
    ),
    "changed-constants": Policy(
        f"Autopilot with one of its constants changed, in {len(_CHANGED_POLICIES)} ways, the best chosen by hindsight",
        lambda _: iter(()),
        settings=tuple(_CHANGED_POLICIES),
        on_request=True,
        depends_on_times=True,
    ),
}

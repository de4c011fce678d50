"""Candidate actions (grids, whole images, single clicks) and their acquisition value.

The value is expected positives, learning and the seconds that the closing plan gets shorter (closing_plan.py), divided
by the annotator's seconds and a price per press.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from annotator.queues import grid_queue
from annotator.queues.event_tiles import MAX_IMAGES_PER_TILE, EventTilesFactory, applies_to_event
from annotator.queues.grid_queue import UnavailableCells
from annotator.records import PRESENT
from annotator.snapshot.closing.account import Account
from annotator.snapshot.closing.closing_plan import GRID_SIZES, NEW_CLASS_TILES, ClosingPlan
from annotator.snapshot.snapshot import Snapshot
from annotator.snapshot.time_model import TimeModel
from annotator.store.database.database import Database
from annotator.store.events import stored_events
from annotator.store.labels import auto_accepted, decisions

PRESS_PENALTY_SECONDS = 1.0  # that a press counts beyond its time
MAX_CLASSES_TRIED = 32  # classes whose grids are evaluated, those with most expected positives first
MAX_EVENT_CLASSES_TRIED = 8  # the same where tiles stand for events, which are looked up for each class
MAX_IMAGES_TRIED = 256  # images at the front of the ranking that are evaluated as a whole
CLOSING_WEIGHT = 2.0  # of a second that the closing plan saves, over the mean yield of the seconds of the plan
# share of its seconds that an image must save in the plan, and open classes below which a click must as well: of one or
# two open classes a grid closes more
MIN_SAVED_SHARE, MIN_CLASSES_PER_CLICK = (0.5, 3)
# probability from which the model is sure; cells of a class that are read
SURE_PROBABILITY, SURE_SAMPLE_CELLS = (0.8, 5000)
# value, in labels, of the first example of a class: from then on a model looks for the others
FIRST_EXAMPLE_VALUE = 2.0
MAX_CLASSES_SEARCHED = 3  # classes without an example whose grids are evaluated, the likeliest first
MAX_UNUSUAL_IMAGES = 192  # unusual images that are searched before random ones
PRIOR_HALF_LIFE_IMAGES = 20  # images that were asked about since an image, after which it counts half
LEARNING_VALUE = 0.25  # value, in labels, of an answer to a cell of maximum uncertainty, while nothing is decided


EventImages = Mapping[int, Sequence[tuple[int, float | None]]]
NO_EVENT_IMAGES: Mapping[int, Mapping[int, float]] = {}


@dataclass(frozen=True)
class Candidate:
    """A candidate for Autopilot's next action, before it is leased."""

    # grid, image, click, search (grid of a class without example) or relabel
    kind: str
    # 0 unless a grid
    class_id: int
    # (image id, probability or None), one image unless a grid
    cells: Sequence[tuple[int, float | None]]
    expected_positives: float
    decided_cells: int
    # key presses besides Enter
    expected_presses: float
    # gain for the model, in units of labels
    learning_value: float
    seconds: float
    # "random", "exploration", "leftover", or "" if selected by value. For a search, "random" means random images,
    # "leftover" the last open ones and "" unusual ones
    reason: str = ""
    # for relabel, whether the checked labels are "present"
    start_present: bool = False
    # expected positives implied by class relations
    implied_positives: float = 0.0
    # image id -> other images of its event, with probabilities in grids
    event_images: EventImages = field(default_factory=dict[int, Sequence[tuple[int, float | None]]])
    # seconds by which the closing plan gets shorter
    saved_seconds: float = 0.0
    # value of one of them, in labels
    second_value: float = 0.0

    @property
    def value(self) -> float:
        """Return the acquisition value in labels: positives, learning, and seconds of the plan saved."""
        closing = self.second_value * self.saved_seconds
        return self.expected_positives + self.implied_positives + self.learning_value + closing

    @property
    def value_per_second(self) -> float:
        """Return the acquisition value per second, where each key press costs PRESS_PENALTY_SECONDS more."""
        presses = 1 if self.kind == "click" else 1 + self.expected_presses
        return self.value / (self.seconds + PRESS_PENALTY_SECONDS * presses)


def choose_sizes(max_tiles: int | None) -> tuple[int, ...]:
    """Return the grid sizes to try: those in GRID_SIZES below `max_tiles`, and the largest allowed one."""
    if max_tiles is None:
        return GRID_SIZES
    most = min(max_tiles, GRID_SIZES[-1])
    return (*(size for size in GRID_SIZES if size < most), most)


def propose_grids(
    snapshot: Snapshot,
    time_model: TimeModel,
    unavailable_cells: UnavailableCells,
    plan: ClosingPlan,
    account: Account,
    max_tiles: int | None = None,
    event_tiles: EventTilesFactory | None = None,
    count_implied: "ImpliedCounter | None" = None,
) -> Iterator[Candidate]:
    """Yield the grid of highest value per second for each class with a model, those with most positives first.

    Args:
        plan: Its number of answered cells limits the grid size of a class.
        max_tiles: None allows all GRID_SIZES.
        event_tiles: Set if a tile can stand for all images of its event.
        count_implied: None without class relations.
    """
    sizes = choose_sizes(max_tiles)
    finds, tried = (
        grid_queue.estimate_positives(snapshot, unavailable_cells, sizes[0]),
        MAX_EVENT_CLASSES_TRIED if event_tiles else MAX_CLASSES_TRIED,
    )
    for class_id in sorted(finds, key=lambda class_id: (-finds[class_id], class_id))[:tried]:
        column = snapshot.delta.find_column(class_id)
        if column is None:
            continue
        excluded, others = unavailable_cells.get_unavailable_images(class_id), {}
        source = grid_queue.iterate_ranked_cells(snapshot, column, excluded)
        if event_tiles:
            grouped = event_tiles(class_id, excluded)
            source, others = grouped.group_by_event(source), grouped.others
        cells = list(islice(source, sizes[-1]))
        most = max(NEW_CLASS_TILES, plan.count_answers(class_id))
        front_cells = [cells[:size] for size in sizes if size == sizes[0] or (size <= most and len(cells) > size // 2)]
        more = None if count_implied is None else count_implied(class_id, [image_id for image_id, _ in cells])
        candidates = [
            build_grid_candidate(class_id, front, time_model, plan, account, others, more)
            for front in front_cells
            if front
        ]
        if candidates:
            yield max(candidates, key=_get_value_per_second)


def build_grid_candidate(
    class_id: int,
    cells: Sequence[tuple[int, float]],
    time_model: TimeModel,
    plan: ClosingPlan,
    account: Account,
    event_images: EventImages,
    implied: np.ndarray | None = None,
) -> Candidate:
    """Return the candidate of a grid with these cells (image id, probability).

    Args:
        event_images: Tile image -> other images of its event, which cost no time and teach nothing. Unlikely ones
            get only absent labels.
        implied: (n,), number of unanswered classes that each cell implies if present.
    """
    tile_of = {image_id: chance for image_id, chance in cells if image_id in event_images}
    event_images = {image_id: event_images[image_id] for image_id in tile_of}
    behind = np.array([chance for pairs in event_images.values() for _, chance in pairs], np.float64)
    spoken_for = [applies_to_event(tile_of[tile], True) for tile, pairs in event_images.items() for _ in pairs]
    given = np.concatenate([np.array([chance for _, chance in cells], np.float64), behind])
    probabilities = account.correct_for_grid(class_id, given)
    shown = probabilities[: len(cells)]
    found = float(shown.sum() + probabilities[len(cells) :][np.array(spoken_for, bool)].sum())
    changes = min(float(shown.sum()), len(cells) - float(shown.sum()))
    seconds, learning = (
        time_model.estimate_grid_seconds(len(cells), changes),
        _estimate_learning_value(shown, plan.open_share),
    )
    numbers = (found, len(probabilities), changes, learning, seconds)
    beside = 0.0 if implied is None else float((shown * implied[: len(cells)]).sum())
    saved = plan.estimate_saving(class_id, len(probabilities), changes, time_model)
    worth = CLOSING_WEIGHT * plan.estimate_yield(time_model)
    return Candidate(
        "grid",
        class_id,
        cells,
        *numbers,
        implied_positives=beside,
        event_images=event_images,
        saved_seconds=saved,
        second_value=worth,
    )


ImpliedCounter = Callable[[int, Sequence[int]], np.ndarray]
"""(class id, image ids (n,)) -> (n,): how many other open classes a positive would settle as present on each."""

ProbabilityCorrector = Callable[[Sequence[dict[int, float]]], Sequence[dict[int, float]]]
"""What the probabilities of the open classes of images are worth: for each, class id -> probability."""


def propose_searches(
    rates: Mapping[int, float],
    draw: Callable[[int, int, bool], Sequence[int]],
    searched: Mapping[int, int],
    time_model: TimeModel,
    plan: ClosingPlan,
    found: Collection[int],
    max_tiles: int | None = None,
) -> Iterator[Candidate]:
    """Yield the best grid for each of the MAX_CLASSES_SEARCHED likeliest classes without a model.

    Unusual images come first. After MAX_UNUSUAL_IMAGES, every other grid is random, which gives an upper limit of the
    class's share.

    Args:
        rates: Class id -> expected share of images.
        draw: Returns free, unanswered images: random, or unusual first.
        searched: Class id -> number of unusual images labeled absent.
        found: Classes with an example.
    """
    sizes = choose_sizes(max_tiles)
    for class_id in sorted(rates, key=lambda class_id: (-rates[class_id], class_id))[:MAX_CLASSES_SEARCHED]:
        answers = plan.count_answers(class_id)
        most = max(NEW_CLASS_TILES, answers)
        is_random = searched.get(class_id, 0) >= MAX_UNUSUAL_IMAGES and searched[class_id] > answers / 2
        drawn = draw(class_id, max(size for size in sizes if size == sizes[0] or size <= most), is_random)
        fronts = [drawn[:size] for size in sizes if size == sizes[0] or len(drawn) > size // 2]
        candidates = [
            build_search_candidate(class_id, front, rates[class_id], time_model, plan, is_found=class_id in found)
            for front in fronts
            if front
        ]
        if candidates:
            yield replace(max(candidates, key=_get_value_per_second), reason="random" if is_random else "")


def build_search_candidate(
    class_id: int, image_ids: Sequence[int], rate: float, time_model: TimeModel, plan: ClosingPlan, *, is_found: bool
) -> Candidate:
    """Return the candidate of a grid without predictions, nothing preset, where `rate` of the tiles are present."""
    tiles, positives = len(image_ids), rate * len(image_ids)
    learning = 0.0 if is_found else FIRST_EXAMPLE_VALUE * float(1 - np.exp(-positives))
    numbers = (positives, tiles, positives, learning, time_model.estimate_grid_seconds(tiles, positives))
    saved = plan.estimate_saving(class_id, tiles, positives, time_model)
    worth = CLOSING_WEIGHT * plan.estimate_yield(time_model)
    cells = [(image_id, None) for image_id in image_ids]
    return Candidate("search", class_id, cells, *numbers, saved_seconds=saved, second_value=worth)


def propose_images(
    db: Database,
    snapshot: Snapshot,
    time_model: TimeModel,
    unavailable_image_ids: Collection[int],
    plan: ClosingPlan,
    unlabeled: Sequence[int],
    prior: "PositivePrior",
    correct: ProbabilityCorrector,
    preset_threshold: float | None = None,
    *,
    in_events: bool = False,
) -> Iterator[Candidate]:
    """Yield the best image to answer in every class, and the best single click.

    Args:
        unavailable_image_ids: Leased, current or skipped images.
        unlabeled: Images without a known positive, tried besides the likeliest.
        prior: Probability that such an image shows an unanswered class.
        in_events: An image's answers also apply to its event.
    """
    rows = snapshot.rankings.by_image[:MAX_IMAGES_TRIED]
    likeliest = snapshot.predictions.image_ids[rows[rows >= 0]].tolist()
    image_ids = [
        image_id for image_id in dict.fromkeys([*likeliest, *unlabeled]) if image_id not in unavailable_image_ids
    ]
    whole, clicks = [], []
    opened = list(iterate_open_cells(db, snapshot, image_ids))
    all_corrected = correct([probabilities for _, probabilities, _ in opened])
    behind = (
        _correct_event_images(db, snapshot, [image_id for image_id, _, _ in opened], unavailable_image_ids, correct)
        if in_events
        else {}
    )
    for (image_id, probabilities, has_positive), corrected in zip(opened, all_corrected, strict=True):
        least = 0.0 if has_positive else prior.compute_any_probability(probabilities)
        more = {"min_positives": least, "preset_threshold": preset_threshold, "event_images": behind.get(image_id, {})}
        candidate = build_image_candidate(image_id, corrected, time_model, plan, **more)
        is_cheap = candidate.saved_seconds >= MIN_SAVED_SHARE * candidate.seconds
        if is_cheap:
            whole.append(candidate)
        if not has_positive and (is_cheap or len(corrected) >= MIN_CLASSES_PER_CLICK):
            clicks.append(build_click_candidate(image_id, corrected, time_model, plan, min_positives=least))
    for candidates in (whole, clicks):
        if candidates:
            yield max(candidates, key=_get_value_per_second)


def _correct_event_images(
    db: Database,
    snapshot: Snapshot,
    image_ids: Sequence[int],
    unavailable_image_ids: Collection[int],
    correct: ProbabilityCorrector,
) -> dict[int, dict[int, dict[int, float]]]:
    """Return image id -> event image -> class id -> corrected probability."""
    others = stored_events.find_open_siblings(db, image_ids, MAX_IMAGES_PER_TILE)
    free = {image_id for behind in others.values() for image_id in behind if image_id not in unavailable_image_ids}
    opened = list(iterate_open_cells(db, snapshot, sorted(free)))
    worth_of = dict(
        zip((image_id for image_id, _, _ in opened), correct([cells for _, cells, _ in opened]), strict=True)
    )
    return {
        image_id: {other: worth_of[other] for other in behind if other in worth_of}
        for image_id, behind in others.items()
    }


class PositivePrior:
    """An estimator (Bayes) of the probability that an image without known positives shows an unanswered class.

    Args:
        had_positive: Whether answered images have a positive, newest first. Weights halve every
            PRIOR_HALF_LIFE_IMAGES.
        present: Class id -> number of present labels.
    """

    def __init__(self, had_positive: Sequence[bool], present: dict[int, int]):
        weights = 0.5 ** (np.arange(len(had_positive)) / PRIOR_HALF_LIFE_IMAGES)
        # Adds one image without positives, as a prior.
        self.share = float(weights[np.array(had_positive, bool)].sum() / (weights.sum() + 1))
        self.frequency = {class_id: count + 0.5 for class_id, count in present.items()}
        self.total = sum(self.frequency.values())

    def compute_any_probability(self, class_ids: Collection[int]) -> float:
        left = sum(self.frequency.get(class_id, 0.0) for class_id in class_ids) / max(self.total, 1e-9)
        return self.share * left / max(self.share * left + 1 - self.share, 1e-9)


def iterate_open_cells(
    db: Database, snapshot: Snapshot, image_ids: Sequence[int]
) -> Iterator[tuple[int, dict[int, float], bool]]:
    """Yield (image id, unanswered class id -> probability, has a positive) per image with unanswered cells."""
    states: dict[int, dict[int, int]] = {}
    for label in decisions.load_labels(db, image_ids):
        states.setdefault(label.image_id, {})[label.class_id] = label.state
    accepted = auto_accepted.load_accepted_class_ids(db, image_ids)
    class_ids = snapshot.predictions.class_ids.tolist()
    for image_id, row, in_run in zip(image_ids, *snapshot.predictions.find_rows(image_ids), strict=True):
        if not in_run:
            continue
        answers = states.get(image_id, {})
        probabilities = np.nan_to_num(np.array(snapshot.predictions.probabilities[row], np.float64)).tolist()
        closed = {*answers, *accepted.get(image_id, {})}
        open_ = {
            class_id: probability
            for class_id, probability in zip(class_ids, probabilities, strict=True)
            if class_id not in closed
        }
        if open_:
            yield image_id, open_, PRESENT in answers.values()


def compute_sharpness(snapshot: Snapshot) -> float:
    """Return the share of all expected positives that is in cells of at least SURE_PROBABILITY."""
    scores = snapshot.rankings.scores[:, :SURE_SAMPLE_CELLS].astype(np.float32)
    return float(scores[scores >= SURE_PROBABILITY].sum() / max(float(snapshot.rankings.expected.sum()), 1e-9))


def build_image_candidate(
    image_id: int,
    probabilities: dict[int, float],
    time_model: TimeModel,
    plan: ClosingPlan,
    *,
    min_positives: float = 0.0,
    preset_threshold: float | None = None,
    event_images: Mapping[int, Mapping[int, float]] = NO_EVENT_IMAGES,
) -> Candidate:
    """Return the candidate of answering all unanswered classes of an image.

    Args:
        preset_threshold: Classes from this probability on start present. None disables.
        event_images: Image id -> class id -> probability, for other images of the event.
    """
    values = np.array(list(probabilities.values()))
    preset = values >= (np.inf if preset_threshold is None else preset_threshold)
    changes = float(np.where(preset, 1 - values, values).sum())
    changes = max(changes, min_positives - float(values[preset].sum()))
    others = [
        probability
        for cells in event_images.values()
        for class_id, probability in cells.items()
        if class_id in probabilities
    ]
    positives = max(float(values.sum()), min_positives) + sum(others)
    seconds, learning = (
        time_model.estimate_image_seconds(len(values), changes),
        _estimate_learning_value(values, plan.open_share),
    )
    seconds += len(event_images) * time_model.tile
    numbers = (positives, len(values) + len(others), changes, learning, seconds)
    pairs = {image_id: [(other, None) for other in event_images]} if event_images else {}
    class_ids = [class_id for cells in (probabilities, *event_images.values()) for class_id in cells]
    saved = plan.estimate_image_saving(class_ids, min(positives, len(values) + len(others)), time_model)
    worth = CLOSING_WEIGHT * plan.estimate_yield(time_model)
    cells = [(image_id, None)]
    return Candidate("image", 0, cells, *numbers, event_images=pairs, saved_seconds=saved, second_value=worth)


def build_click_candidate(
    image_id: int,
    probabilities: dict[int, float],
    time_model: TimeModel,
    plan: ClosingPlan,
    *,
    min_positives: float = 0.0,
) -> Candidate:
    """Return the candidate of clicking one present class on an image without known positives."""
    values = np.array(list(probabilities.values()))
    positives = max(float(1 - np.prod(1 - values)), min_positives)
    learning = _estimate_learning_value(values, plan.open_share) / len(values)
    return Candidate("click", 0, [(image_id, None)], positives, 1, positives, learning, time_model.click)


def _estimate_learning_value(probabilities: np.ndarray, open_share: float) -> float:
    """Return the gain for the model, in labels, of answering these cells (Lewis and Gale, SIGIR 1994)."""
    return LEARNING_VALUE * open_share * float((probabilities * (1 - probabilities)).sum())


def _get_value_per_second(candidate: Candidate) -> float:
    return candidate.value_per_second

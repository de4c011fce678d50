"""Measurement of how often the certificate's 95 % intervals hold the truth, in simulated projects with known truth.

Each project goes through the steps of a real one: people label likely cells, a model scores the rest well or badly,
some cells are auto-accepted, an audit is drawn, ordinary work answers some of its cells, people answer others, and the
intervals are computed by the app's code (spmll/statistics/stratified_sampling.py,
spmll/statistics/certified_recall.py). In some, people err (erring_team.py), several of them answer some images, and
recall allows for their mistakes. In some, images come in events, and both images and events are certified
(spmll/statistics/event_totals.py).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from annotator.benchmark.certificate.simulated_projects import (
    ALL_SHARES,
    MIN_FILL_PROBABILITY,
    OPEN_STATE,
    PROJECT_KINDS,
    RARE_SHARES,
    ProjectKind,
    decide_cells,
    draw_class_audit,
    draw_scores,
    find_counted_cells,
    join_strata,
)
from benchmarks.erring_team import ErringTeam, draw_answers, label_double_readings
from spmll.labels import ABSENT, PRESENT
from spmll.statistics.allowed_mistakes import DoubleReadings, allow_for_mistakes, measure_double_readings
from spmll.statistics.certified_recall import CertifiedFigures, LabelTotals, certify, count_strata
from spmll.statistics.event_totals import (
    EventSample,
    EventTotals,
    certify_events,
    compute_event_states,
    count_events,
    draw_events,
)
from spmll.statistics.stratified_sampling import (
    NO_STRATUM,
    DrawnSample,
)

SIMULATED_PROJECTS = 1000
IMAGES_PER_PROJECT, CLASSES_PER_PROJECT = ProjectKind.images, ProjectKind.classes
AUDIT_CELLS_PER_CLASS = ProjectKind.cells  # drawn of each class
INTERVAL_DRAWS = 500
PROMISED_FIGURES = ("classes", "overall", "precision", "precision_overall", "events", "events_overall")


@dataclass(frozen=True)
class Events:
    """How the images of a simulated project come in events.

    Attributes:
        largest: Events have 1 to so many images, each number as likely as another.
        showing: The share of the images of an event that show a class which is in the event; 1: all are alike.
        answered_whole: Ordinary work answers all images of an event at once.
        drawn_whole: Audits of images draw events instead of images and count their images as if drawn one by one.
    """

    largest: int
    showing: float
    answered_whole: bool = True
    drawn_whole: bool = False


@dataclass(frozen=True)
class Condition(ProjectKind):
    """A kind of project, in which a team may answer, and images may come in events.

    Attributes:
        answered_share: The share of the audit's cells that are answered.
        people: The team that answers; None: one person who is always right.
        events: How images come in events; None: each on its own.
    """

    answered_share: float = 1.0
    people: ErringTeam | None = None
    events: Events | None = None


FAULTLESS_CONDITIONS = {
    name: Condition(**vars(kind))
    for name, kind in PROJECT_KINDS.items()
    if (kind.images, kind.classes) == (IMAGES_PER_PROJECT, CLASSES_PER_PROJECT) and kind.repeats is None
} | {
    "rare, late, good model": Condition(RARE_SHARES, 3.0, 0.6),
    "auto-accepted from a bad model": Condition(ALL_SHARES, 0.5, 0.1, has_auto_accepted=True),
    "half answered, much work since": Condition(ALL_SHARES, 2.0, 0.1, answered_share=0.5, share_since_audit=0.2),
}
MIXED_SHARES = (0.01, 0.3)
ERRING_CONDITIONS = {
    "two people, a tenth twice": Condition(MIXED_SHARES, 2.0, 0.6, people=ErringTeam(2, (0.8, 0.98), (0.99, 1.0), 0.1)),
    "five people, a fifth twice": Condition(
        MIXED_SHARES, 2.0, 0.6, people=ErringTeam(5, (0.7, 0.98), (0.99, 1.0), 0.2)
    ),
    "everything twice": Condition(MIXED_SHARES, 2.0, 1.0, people=ErringTeam(5, (0.7, 0.98), (0.98, 1.0), 1.0)),
    "one is careless": Condition(
        MIXED_SHARES, 2.0, 0.6, people=ErringTeam(4, (0.8, 0.98), (0.99, 1.0), 0.2, has_careless=True)
    ),
    "many false alarms": Condition(MIXED_SHARES, 2.0, 0.6, people=ErringTeam(4, (0.8, 0.98), (0.93, 1.0), 0.2)),
    "half settled": Condition(
        MIXED_SHARES, 2.0, 0.6, people=ErringTeam(4, (0.8, 0.98), (0.99, 1.0), 0.2, settled_share=0.5)
    ),
    "nothing settled": Condition(
        MIXED_SHARES, 2.0, 0.6, people=ErringTeam(4, (0.8, 0.98), (0.99, 1.0), 0.2, settled_share=0.0)
    ),
    "early": Condition(MIXED_SHARES, 2.0, 0.1, people=ErringTeam(4, (0.8, 0.98), (0.99, 1.0), 0.2)),
}
OVERLOOKED_CONDITIONS = {
    "a fifth is hard for everybody": replace(
        ERRING_CONDITIONS["five people, a fifth twice"],
        people=ErringTeam(5, (0.7, 0.98), (0.99, 1.0), 0.2, overlooked_share=0.2),
    )
}
EVENT_CONDITIONS = {
    f"events of 1 to {events.largest}, {kind}, {stage}": Condition(shares, model, decided, events=events)
    for events, kind in (
        (Events(30, 1.0), "alike"),
        (Events(30, 0.3), "unalike"),
        (Events(30, 1.0, answered_whole=False), "alike, answered image by image"),
        (Events(5, 1.0), "alike"),
        (Events(1, 1.0), "alone"),
    )
    for stage, shares, model, decided in (
        ("early", MIXED_SHARES, 2.0, 0.05),
        ("late, bad model", MIXED_SHARES, 0.3, 0.6),
    )
}
WHOLE_EVENT_CONDITIONS = {
    f"events of 1 to {largest}, drawn whole": Condition(
        MIXED_SHARES, 2.0, 0.05, events=Events(largest, 1.0, drawn_whole=True)
    )
    for largest in (5, 30)
}


@dataclass(frozen=True)
class Truth:
    """The true values of the certificate's figures; nan where a class has no positive, or nothing is labeled.

    Attributes:
        event_recall, missing_events: Only where images come in events.
    """

    recall: np.ndarray
    precision: np.ndarray
    missing: np.ndarray
    event_recall: np.ndarray | None = None
    missing_events: np.ndarray | None = None


def measure(projects: int = SIMULATED_PROJECTS, seed: int = 0) -> dict:
    """Measure for each condition how often the intervals of classes, and of all classes together, hold the truth.

    Each project has IMAGES_PER_PROJECT images and CLASSES_PER_PROJECT classes; AUDIT_CELLS_PER_CLASS cells are drawn
    for an audit.
    """
    started = time.perf_counter()
    every = FAULTLESS_CONDITIONS | ERRING_CONDITIONS | EVENT_CONDITIONS | OVERLOOKED_CONDITIONS | WHOLE_EVENT_CONDITIONS
    rows = {name: measure_coverage(condition, projects, seed) for name, condition in every.items()}
    # Reported, and not promised: what everybody overlooks is beyond what overlap can show, and audits do not draw
    # events, because then nothing would hold.
    not_promised = OVERLOOKED_CONDITIONS | WHOLE_EVENT_CONDITIONS
    promised = [
        value for name, row in rows.items() if name not in not_promised for value in map(row.get, PROMISED_FIGURES)
    ]
    return {
        "bench": "certificate",
        "figures": {f"{name}: {kind}": value for name, row in rows.items() for kind, value in row.items()}
        | {"projects": projects, "seconds": round(time.perf_counter() - started, 1)},
        "ratios": {"coverage_at_least": min(value for value in promised if value is not None)},
    }


def measure_coverage(condition: Condition, projects: int, seed: int = 0) -> dict:
    """Return the shares of simulated projects in which the intervals held the truth.

    Returns:
        Classes, overall: of recall and of the missing positives (both must hold; where people err, of the recall that
        allows for it); precision, precision_overall: only where people do not err; events, events_overall: of recall
        and missing, counted in events; width, event_width: the mean width of the classes' interval of recall, in images
        and in events.
    """
    held, right, of_events, widths, event_widths = [], [], [], [], []
    for number in range(projects):
        truth, certified, events = simulate_project(np.random.default_rng([seed, number]), condition)
        # How many are missing is certified for people who are right.
        missing = condition.people is not None or check_intervals(certified.missing, truth.missing)
        held.append(check_intervals(certified.recall, truth.recall) & missing)
        right.append(check_intervals(certified.precision, truth.precision))
        if events and truth.event_recall is not None and truth.missing_events is not None:
            of_events.append(
                check_intervals(events.recall, truth.event_recall)
                & check_intervals(events.missing, truth.missing_events)
            )
            event_widths.append((events.recall.high - events.recall.low)[:-1].mean())
        widths.append((certified.recall.high - certified.recall.low)[:-1].mean())
    shares = {"": np.array(held)} | ({} if condition.people else {"precision": np.array(right)})
    shares |= {"events": np.array(of_events)} if of_events else {}
    return {
        name: round(float(value), 4)
        for kind, of in shares.items()
        for name, value in ((kind or "classes", of[:, :-1].mean()), (f"{kind}_overall".strip("_"), of[:, -1].mean()))
    } | {name: round(float(np.mean(of)), 3) for name, of in (("width", widths), ("event_width", event_widths)) if of}


def check_intervals(bounds, truth: np.ndarray) -> np.ndarray:
    """Return (C + 1,) bool: the interval holds the truth, or the truth is nan."""
    return np.isnan(truth) | ((bounds.low <= truth + 1e-9) & (bounds.high >= truth - 1e-9))


def simulate_project(
    rng: np.random.Generator, condition: Condition
) -> tuple[Truth, CertifiedFigures, EventTotals | None]:
    """Simulate one project from its first decision to its certificate."""
    rates = np.exp(rng.uniform(*np.log(condition.shares), size=CLASSES_PER_PROJECT))
    grouped = condition.events
    if grouped:
        event_of, truth = _group_into_events(rng, rates, grouped)
    else:
        event_of, truth = None, rng.random((IMAGES_PER_PROJECT, CLASSES_PER_PROJECT)) < rates
    states = np.full(truth.shape, OPEN_STATE)
    said, unsettled, read = truth, np.zeros(truth.shape, bool), None
    in_audits = truth
    if condition.people:
        team = draw_answers(rng, truth, condition.people)
        said, in_audits = team.first_answers, team.second_answers
        read, unsettled = label_double_readings(rng, team, truth, states, condition.people)
    accepted, parts, scores = simulate_work(rng, condition, states, said, in_audits, truth, rates, event_of)
    if event_of is None:
        return (
            compute_true_figures(truth, states, accepted),
            _certify_project(states, accepted, parts, unsettled, read),
            None,
        )
    at_once = event_of if grouped and grouped.answered_whole else None
    # An audit of events, for which people answer AUDIT_CELLS_PER_CLASS events of each class, comes after that of
    # images.
    events = _audit_events(
        rng, states, truth, scores, event_of, lambda: decide_cells(rng, states, said, scores, 0.05, at_once)
    )
    true = _add_event_figures(compute_true_figures(truth, states, accepted), truth, states, event_of)
    return true, _certify_project(states, accepted, parts, unsettled, read), events


def simulate_work(
    rng: np.random.Generator,
    condition: Condition,
    states: np.ndarray,
    answers: np.ndarray,
    audit_answers: np.ndarray,
    truth: np.ndarray,
    rates: np.ndarray,
    event_of: np.ndarray | None,
) -> tuple[np.ndarray, list[dict], np.ndarray]:
    """Let people and models decide in `states`, in audits and otherwise.

    Args:
        rng: Decides all that is random.
        condition: The kind of project.
        states: (N, C), changed in place.
        answers: (N, C) bool, what people answer.
        audit_answers: (N, C) bool, what they answer in audits.
        truth: (N, C) bool.
        rates: (C,) the shares of the images that show a class.
        event_of: (N,) the event of each image; None without events.

    Returns:
        The auto-accepted cells (N, C), the audits of the classes with their answers, and the newest scores (N, C).
    """
    grouped = condition.events
    accepted = np.zeros(truth.shape, bool)
    parts: list[dict] = []
    scores = np.zeros(truth.shape)
    at_once = event_of if grouped and grouped.answered_whole else None
    for drawing in range(condition.audits):
        scores = draw_scores(rng, truth, rates, condition.model)
        decide_cells(rng, states, answers, scores, condition.decided_share, at_once)
        if condition.has_auto_accepted:
            accepted = (scores >= MIN_FILL_PROBABILITY) & (states == OPEN_STATE)
        together = event_of if grouped and grouped.drawn_whole else None
        drawn = [
            _draw_audit(rng, states[:, c], accepted[:, c], scores[:, c], condition.cells, together)
            for c in range(CLASSES_PER_PROJECT)
        ]
        decide_cells(
            rng, states, answers, draw_scores(rng, truth, rates, condition.model), condition.share_since_audit, at_once
        )
        for column, sample in enumerate(drawn):
            answered = sample.rows[: round(condition.answered_share * len(sample.rows))]
            unbiased = np.isin(sample.rows, answered) & (states[sample.rows, column] == OPEN_STATE)
            rows = sample.rows[unbiased]
            states[rows, column] = np.where(audit_answers[rows, column], PRESENT, ABSENT)
            parts.append({"of_class": column, "drawing": drawing, "drawn": sample, "unbiased": unbiased})
    return accepted, parts, scores


def _group_into_events(rng: np.random.Generator, rates: np.ndarray, events: Events) -> tuple[np.ndarray, np.ndarray]:
    """Return the event of each image, (N,) from 0, and which classes each shows: `rates` are of events."""
    sizes = rng.integers(1, events.largest + 1, IMAGES_PER_PROJECT)
    event_of = np.repeat(np.arange(IMAGES_PER_PROJECT), sizes)[:IMAGES_PER_PROJECT]
    is_in = rng.random((IMAGES_PER_PROJECT, CLASSES_PER_PROJECT)) < rates
    return event_of, is_in[event_of] & (rng.random((IMAGES_PER_PROJECT, CLASSES_PER_PROJECT)) < events.showing)


def _draw_audit(
    rng: np.random.Generator,
    states: np.ndarray,
    accepted: np.ndarray,
    scores: np.ndarray,
    cells: int,
    whole_events: np.ndarray | None = None,
) -> DrawnSample:
    """Draw the audit of one class; `together`: events that are drawn whole instead, until there are `cells` images."""
    if whole_events is None:
        return draw_class_audit(rng, states, accepted, scores, cells)
    is_open = (states == OPEN_STATE) & ~accepted
    open_ = np.flatnonzero(is_open)
    rank = rng.permutation(IMAGES_PER_PROJECT)[whole_events[open_]]
    return DrawnSample(
        np.where(is_open, 0, NO_STRATUM).astype(np.uint8), open_[np.argsort(rank, kind="stable")][:cells]
    )


def _audit_events(
    rng: np.random.Generator,
    states: np.ndarray,
    truth: np.ndarray,
    scores: np.ndarray,
    event_of: np.ndarray,
    work: Callable[[], None],
) -> EventTotals:
    """Draw an audit of events, let people work, answer it in `states`, and return what it says."""
    drawn = [
        draw_events(states[:, c], scores[:, c], event_of, np.unique(event_of), AUDIT_CELLS_PER_CLASS, rng)
        for c in range(CLASSES_PER_PROJECT)
    ]
    work()
    counts = []
    for column, sample in enumerate(drawn):
        in_audit = states[sample.rows, column] == OPEN_STATE
        rows = sample.rows[in_audit]
        states[rows, column] = np.where(truth[rows, column], PRESENT, ABSENT)
        answered = EventSample(sample.strata, sample.rows, np.arange(len(sample.rows)), in_audit)
        counts.append(count_events(answered, states[:, column], event_of))
    found = [int((compute_event_states(states[:, c], event_of) == PRESENT).sum()) for c in range(CLASSES_PER_PROJECT)]
    return certify_events(counts, np.array(found), INTERVAL_DRAWS)


def _certify_project(
    states: np.ndarray, accepted: np.ndarray, parts: list[dict], unsettled: np.ndarray, read: DoubleReadings | None
) -> CertifiedFigures:
    counts = []
    for part in parts:
        column, drawn = part["of_class"], part["drawn"]
        counted_strata = count_strata(
            drawn.strata,
            states[:, column],
            accepted[:, column],
            drawn.rows,
            find_counted_cells(states[:, column], drawn, part["unbiased"]),
        )
        many = len(counted_strata["code"])
        counts.append(counted_strata | {"of_class": np.full(many, column), "audit": np.full(many, part["drawing"])})
    strata = join_strata(counts)
    none = np.zeros(CLASSES_PER_PROJECT, int)
    filled = (accepted & (states == OPEN_STATE)).sum(0)
    differ = [(unsettled & (states == state)).sum(0) for state in (PRESENT, ABSENT)]
    labels = LabelTotals((states == PRESENT).sum(0), filled, none, np.full(CLASSES_PER_PROJECT, np.nan), *differ)
    certified = certify(strata, labels, INTERVAL_DRAWS)
    if read is None:
        return certified
    open_ = (states == OPEN_STATE).sum(0) - filled
    return replace(
        certified,
        recall=allow_for_mistakes(
            certified, labels, (states == ABSENT).sum(0), open_, measure_double_readings(read, INTERVAL_DRAWS), read
        ),
    )


def compute_true_figures(truth: np.ndarray, states: np.ndarray, accepted: np.ndarray) -> Truth:
    """Return the true figures of these labels."""
    filled = accepted & (states == OPEN_STATE)
    labeled = (states == PRESENT) | filled
    right, positives, given = (_append_total(cells) for cells in (labeled & truth, truth, labeled))
    with np.errstate(invalid="ignore"):
        return Truth(right / positives, right / given, (positives - right).astype(float))


def _add_event_figures(true: Truth, truth: np.ndarray, states: np.ndarray, event_of: np.ndarray) -> Truth:
    events = np.zeros((2, IMAGES_PER_PROJECT, CLASSES_PER_PROJECT), bool)
    for of_event, cells in zip(events, (truth, states == PRESENT), strict=True):
        np.logical_or.at(of_event, event_of, cells)
    showing, found = (_append_total(of_event) for of_event in events)
    with np.errstate(invalid="ignore"):
        return replace(true, event_recall=found / showing, missing_events=(showing - found).astype(float))


def _append_total(cells: np.ndarray) -> np.ndarray:
    by_class = cells.sum(0)
    return np.append(by_class, by_class.sum())

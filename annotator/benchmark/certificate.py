"""Measurement of how often the certificate's 95 % intervals hold the truth, in simulated projects with known truth.

Each project goes through the steps of a real one: people label likely cells, a model scores the rest well or badly,
some cells are auto-accepted, an audit is drawn, ordinary work answers some of its cells, people answer others, and the
intervals are computed by the app's code (models/statistics/stratified_sampling.py, models/statistics/certificate.py).
In some, people err (erring_people.py), several of them answer some images, and recall allows for their mistakes.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from annotator.benchmark.erring_people import People, read_twice, say
from models.labels import ABSENT, PRESENT
from models.statistics.certificate import Certified, Labels, Strata, certify, count
from models.statistics.double_reading import DoubleRead, allowing_for_mistakes
from models.statistics.stratified_sampling import ACCEPTED_PRESENT, UNKNOWN, draw_class, usable

PROJECTS = 1000
IMAGES, CLASSES = 1500, 6
CELLS = 40  # drawn of each class
OPEN, OUT = 2, -1
FILLED_FROM = 0.97  # probability from which a model fills in, where it does
DRAWS = 500
HELD = ("classes", "overall", "precision", "precision_overall")


@dataclass(frozen=True)
class Condition:
    """The properties of one kind of simulated project.

    Attributes:
        shares: The shares of the images that show a class, from the rarest class to the commonest.
        model: How far the scores of present cells lie above those of absent ones, in standard deviations; negative for
            a model that is worse than chance.
        decided: The share of the cells that people decide before the audit is drawn, likely ones first.
        answered: The share of the audit's cells that are answered.
        since: The share of the cells that ordinary work decides between the audit and the certificate.
        filled: Whether likely cells are auto-accepted before the audit is drawn.
        audits: The number of audits, with work in between.
        people: The team that answers; None: one person who is always right.
    """

    shares: tuple[float, float]
    model: float
    decided: float
    answered: float = 1.0
    since: float = 0.05
    filled: bool = False
    audits: int = 1
    people: People | None = None


RARE, COMMON = (0.003, 0.02), (0.1, 0.5)
CONDITIONS = {
    "rare, early, good model": Condition(RARE, 3.0, 0.02),
    "rare, early, bad model": Condition(RARE, 0.3, 0.02),
    "rare, late, good model": Condition(RARE, 3.0, 0.6),
    "rare, late, bad model": Condition(RARE, 0.3, 0.6),
    "common, early, good model": Condition(COMMON, 2.5, 0.02),
    "common, early, bad model": Condition(COMMON, 0.3, 0.02),
    "common, late, good model": Condition(COMMON, 2.5, 0.6),
    "common, late, bad model": Condition(COMMON, 0.3, 0.6),
    "rare, worse than chance": Condition(RARE, -1.5, 0.1),
    "common, worse than chance": Condition(COMMON, -1.5, 0.1),
    "all, audit half answered, much work since": Condition((0.005, 0.5), 2.0, 0.1, answered=0.5, since=0.2),
    "all, auto-accepted": Condition((0.005, 0.5), 2.5, 0.1, filled=True),
    "all, auto-accepted from a bad model": Condition((0.005, 0.5), 0.5, 0.1, filled=True),
    "all, three audits": Condition((0.005, 0.5), 2.0, 0.05, audits=3),
}
SOME = (0.01, 0.3)
ERRING = {
    "two people, a tenth twice": Condition(SOME, 2.0, 0.6, people=People(2, (0.8, 0.98), (0.99, 1.0), 0.1)),
    "five people, a fifth twice": Condition(SOME, 2.0, 0.6, people=People(5, (0.7, 0.98), (0.99, 1.0), 0.2)),
    "everything twice": Condition(SOME, 2.0, 1.0, people=People(5, (0.7, 0.98), (0.98, 1.0), 1.0)),
    "one is careless": Condition(SOME, 2.0, 0.6, people=People(4, (0.8, 0.98), (0.99, 1.0), 0.2, careless=True)),
    "many false alarms": Condition(SOME, 2.0, 0.6, people=People(4, (0.8, 0.98), (0.93, 1.0), 0.2)),
    "half settled": Condition(SOME, 2.0, 0.6, people=People(4, (0.8, 0.98), (0.99, 1.0), 0.2, settled=0.5)),
    "nothing settled": Condition(SOME, 2.0, 0.6, people=People(4, (0.8, 0.98), (0.99, 1.0), 0.2, settled=0.0)),
    "early": Condition(SOME, 2.0, 0.1, people=People(4, (0.8, 0.98), (0.99, 1.0), 0.2)),
}
OVERLOOKED = {
    "a fifth is hard for everybody": replace(
        ERRING["five people, a fifth twice"], people=People(5, (0.7, 0.98), (0.99, 1.0), 0.2, overlooked=0.2)
    )
}


@dataclass(frozen=True)
class Truth:
    """The true values of the certificate's figures; nan where a class has no positive, or nothing is labeled."""

    recall: np.ndarray
    precision: np.ndarray
    missing: np.ndarray


def measure(projects: int = PROJECTS, seed: int = 0) -> dict:
    """Measure for each condition how often the intervals of classes, and of all classes together, hold the truth.

    Each project has IMAGES images and CLASSES classes; CELLS cells are drawn for an audit.
    """
    started = time.perf_counter()
    rows = {name: coverage(condition, projects, seed) for name, condition in (CONDITIONS | ERRING | OVERLOOKED).items()}
    # What everybody overlooks is beyond what overlap can show: reported, and not promised.
    promised = [value for name, row in rows.items() if name not in OVERLOOKED for value in map(row.get, HELD)]
    return {
        "bench": "certificate",
        "figures": {f"{name}: {kind}": value for name, row in rows.items() for kind, value in row.items()}
        | {"projects": projects, "seconds": round(time.perf_counter() - started, 1)},
        "ratios": {"coverage_at_least": min(value for value in promised if value is not None)},
    }


def coverage(condition: Condition, projects: int, seed: int = 0) -> dict:
    """Return the shares of simulated projects in which the intervals held the truth.

    Returns:
        Classes, overall: of recall and of the missing positives (both must hold; where people err, of the recall that
        allows for it); precision, precision_overall: only where people do not err; and width, the mean width of the
        classes' interval of recall.
    """
    held, right, widths = [], [], []
    for number in range(projects):
        truth, certified = simulate(np.random.default_rng([seed, number]), condition)
        # How many are missing is certified for people who are right.
        missing = condition.people is not None or holds(certified.missing, truth.missing)
        held.append(holds(certified.recall, truth.recall) & missing)
        right.append(holds(certified.precision, truth.precision))
        widths.append((certified.recall.high - certified.recall.low)[:-1].mean())
    shares = {"": np.array(held)} | ({} if condition.people else {"precision": np.array(right)})
    return {
        name: round(float(value), 4)
        for kind, of in shares.items()
        for name, value in ((kind or "classes", of[:, :-1].mean()), (f"{kind}_overall".strip("_"), of[:, -1].mean()))
    } | {"width": round(float(np.mean(widths)), 3)}


def holds(bounds, truth: np.ndarray) -> np.ndarray:
    """Return (C + 1,) bool: the interval holds the truth, or the truth is nan."""
    return np.isnan(truth) | ((bounds.low <= truth + 1e-9) & (bounds.high >= truth - 1e-9))


def simulate(rng: np.random.Generator, condition: Condition) -> tuple[Truth, Certified]:
    """Simulate one project from its first decision to its certificate."""
    rates = np.exp(rng.uniform(*np.log(condition.shares), size=CLASSES))
    truth = rng.random((IMAGES, CLASSES)) < rates
    states = np.full(truth.shape, OPEN)
    said, unsettled, read = truth, np.zeros(truth.shape, bool), None
    in_audits = truth
    if condition.people:
        team = say(rng, truth, condition.people)
        said, in_audits = team.first, team.second
        read, unsettled = read_twice(rng, team, truth, states, condition.people)
    accepted = np.zeros(truth.shape, bool)
    parts: list[dict] = []
    for drawing in range(condition.audits):
        scores = _scores(rng, truth, rates, condition.model)
        _work(rng, states, said, scores, condition.decided)
        if condition.filled:
            accepted = (scores >= FILLED_FROM) & (states == OPEN)
        drawn = [_draw(rng, states[:, c], accepted[:, c], scores[:, c]) for c in range(CLASSES)]
        _work(rng, states, said, _scores(rng, truth, rates, condition.model), condition.since)
        for column, sample in enumerate(drawn):
            answered = sample.rows[: round(condition.answered * len(sample.rows))]
            unbiased = np.isin(sample.rows, answered) & (states[sample.rows, column] == OPEN)
            rows = sample.rows[unbiased]
            states[rows, column] = np.where(in_audits[rows, column], PRESENT, ABSENT)
            parts.append({"of_class": column, "drawing": drawing, "drawn": sample, "unbiased": unbiased})
    return _truth(truth, states, accepted), _certificate(states, accepted, parts, unsettled, read)


def _draw(rng: np.random.Generator, states: np.ndarray, accepted: np.ndarray, scores: np.ndarray):
    kinds = np.where(states != OPEN, OUT, np.where(accepted, ACCEPTED_PRESENT, UNKNOWN))
    return draw_class(kinds, scores, CELLS, rng)


def _certificate(
    states: np.ndarray, accepted: np.ndarray, parts: list[dict], unsettled: np.ndarray, read: DoubleRead | None
) -> Certified:
    counts = []
    for part in parts:
        column, drawn = part["of_class"], part["drawn"]
        answered = states[drawn.rows, column] != OPEN
        counted = np.zeros(len(drawn.rows), bool)
        for code in np.unique(drawn.strata[drawn.rows]):
            of = np.flatnonzero(drawn.strata[drawn.rows] == code)
            counted[of] = usable(of, answered[of], part["unbiased"][of])
        counted_strata = count(drawn.strata, states[:, column], accepted[:, column], drawn.rows, counted)
        many = len(counted_strata["code"])
        counts.append(counted_strata | {"of_class": np.full(many, column), "audit": np.full(many, part["drawing"])})
    strata = Strata(**{name: np.concatenate([part[name] for part in counts]) for name in counts[0]})
    none = np.zeros(CLASSES, int)
    filled = (accepted & (states == OPEN)).sum(0)
    differ = [(unsettled & (states == state)).sum(0) for state in (PRESENT, ABSENT)]
    labels = Labels((states == PRESENT).sum(0), filled, none, np.full(CLASSES, np.nan), *differ)
    certified = certify(strata, labels, DRAWS)
    if read is None:
        return certified
    open_ = (states == OPEN).sum(0) - filled
    return replace(certified, recall=allowing_for_mistakes(certified, labels, (states == ABSENT).sum(0), open_, read))


def _truth(truth: np.ndarray, states: np.ndarray, accepted: np.ndarray) -> Truth:
    filled = accepted & (states == OPEN)
    labeled = (states == PRESENT) | filled
    right, positives, given = (_with_all(cells) for cells in (labeled & truth, truth, labeled))
    with np.errstate(invalid="ignore"):
        return Truth(right / positives, right / given, (positives - right).astype(float))


def _with_all(cells: np.ndarray) -> np.ndarray:
    by_class = cells.sum(0)
    return np.append(by_class, by_class.sum())


def _scores(rng: np.random.Generator, truth: np.ndarray, rates: np.ndarray, apart: float) -> np.ndarray:
    """Draw the probabilities of a model: calibrated where `apart` is positive, reversed where it is negative."""
    seen = rng.normal(size=truth.shape) + apart * truth
    logits = np.abs(apart) * (seen if apart > 0 else -seen) - apart**2 / 2 + np.log(rates / (1 - rates))
    return 1 / (1 + np.exp(-logits))


def _work(rng: np.random.Generator, states: np.ndarray, said: np.ndarray, scores: np.ndarray, share: float) -> None:
    """Decide open cells in `states` as ordinary work does: for each class 70 % likely cells, the rest at random."""
    for column in range(states.shape[1]):
        open_ = np.flatnonzero(states[:, column] == OPEN)
        many = min(round(share * len(states)), len(open_))
        likely = open_[np.argsort(-scores[open_, column])][: round(0.7 * many)]
        rest = rng.permutation(np.setdiff1d(open_, likely))[: many - len(likely)]
        rows = np.concatenate([likely, rest])
        states[rows, column] = np.where(said[rows, column], PRESENT, ABSENT)

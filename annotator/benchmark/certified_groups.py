"""Measurement of how often the 95 % intervals of single groups of images hold the truth, in simulated projects.

Groups are as unequal as places are, from one with a third of the images to ones with few, and classes are as unequally
frequent in them. Each project goes through the steps of certificate.py; the intervals are computed by the app's code
(models/statistics/domain_totals.py).
"""

import time
from dataclasses import replace

import numpy as np

from annotator.benchmark.certificate import (
    CLASSES,
    DRAWS,
    IMAGES,
    OPEN,
    PROJECTS,
    Condition,
    Events,
    counted,
    holds,
    truth_of,
    worked,
)
from annotator.quality.evidence import WIDE
from models.labels import PRESENT
from models.statistics.certificate import Labels, Strata, count_within
from models.statistics.domain_totals import certify_domain, rows_within

GROUPS = 12
CELLS = 200  # drawn of each class


SOME, RARE, COMMON = (0.01, 0.3), (0.003, 0.02), (0.1, 0.5)
LARGE = Events(30, 1.0, answered_whole=False)
CONDITIONS = {
    "few answers": Condition(SOME, 2.0, 0.1),
    "early, good model": Condition(SOME, 2.5, 0.1, cells=CELLS),
    "late, bad model": Condition(SOME, 0.3, 0.6, cells=CELLS),
    "worse than chance": Condition(SOME, -1.5, 0.2, cells=CELLS),
    "rare": Condition(RARE, 2.5, 0.3, cells=CELLS),
    "common": Condition(COMMON, 2.0, 0.3, cells=CELLS),
    "half answered, two audits": Condition(SOME, 2.0, 0.1, audits=2, answered=0.5, cells=CELLS),
    "auto-accepted": Condition(SOME, 2.5, 0.2, filled=True, cells=CELLS),
    "events of 1 to 30": Condition(SOME, 2.0, 0.2, cells=CELLS, events=LARGE),
    "events of 1 to 30, late, bad model": Condition(SOME, 0.3, 0.6, cells=CELLS, events=LARGE),
}
# Not promised: this is what counting the images of whole events, as if drawn one by one, would do.
DRAWN_WHOLE = Condition(SOME, 0.3, 0.2, cells=CELLS, events=replace(LARGE, drawn_whole=True))


def measure(projects: int = PROJECTS, seed: int = 0) -> dict:
    """Measure for each condition how often the intervals of single groups hold the truth."""
    started = time.perf_counter()
    rows = {name: coverage(condition, projects, seed) for name, condition in CONDITIONS.items()}
    reported = rows | {"events drawn whole": coverage(DRAWN_WHOLE, projects, seed)}
    promised = [row[kind] for row in rows.values() for kind in ("recall", "shown", "precision")]
    return {
        "bench": "certificate-groups",
        "figures": {f"{name}: {kind}": round(value, 4) for name, row in reported.items() for kind, value in row.items()}
        | {"projects": projects, "seconds": round(time.perf_counter() - started, 1)},
        "ratios": {"coverage_at_least": round(min(promised), 4)},
    }


def coverage(condition: Condition, projects: int, seed: int = 0) -> dict[str, float]:
    """Return the shares of groups whose intervals held the truth, and their mean width.

    Returns:
        recall: Of recall and of the missing positives (both must hold); shown: the same of the groups whose figures
            would be shown, as the interval is narrow enough; precision; worst: recall in the group in which it held
            most seldom; width: mean width of the interval of recall; share_shown: the share of groups shown.
    """
    figures = np.array([simulate(np.random.default_rng([seed, number]), condition) for number in range(projects)])
    held, right, width, drawn = np.moveaxis(figures, 2, 0)
    shown = (width <= WIDE) & (drawn > 0)
    return {
        "recall": float(held.mean()),
        "shown": float(held[shown].mean()) if shown.any() else 1.0,
        "precision": float(right.mean()),
        "worst": float(held.mean(0).min()),
        "width": float(width.mean()),
        "share_shown": float(shown.mean()),
    }


def simulate(rng: np.random.Generator, condition: Condition) -> np.ndarray:
    """Simulate one project; return of each group whether recall and precision held, recall's width, and cells drawn."""
    sizes = rng.integers(1, (condition.events.largest if condition.events else 1) + 1, IMAGES)
    event_of = np.repeat(np.arange(IMAGES), sizes)[:IMAGES]
    weights = 1 / np.arange(1, GROUPS + 1)
    group_of = rng.choice(GROUPS, IMAGES, p=weights / weights.sum())[event_of]
    rates = np.exp(rng.uniform(*np.log(condition.shares), size=CLASSES))
    in_groups = np.clip(rates * np.exp(rng.normal(size=(GROUPS, CLASSES)) - 0.5), 0, 0.9)
    truth = rng.random((IMAGES, CLASSES))[event_of] < in_groups[group_of]
    states = np.full(truth.shape, OPEN)
    accepted, parts, _ = worked(rng, condition, states, truth, truth, truth, rates, event_of)
    result = []
    counts = [(part["of_class"], part["drawing"], _counts(part, states, accepted, group_of)) for part in parts]
    for group in range(GROUPS):
        rows = [
            found | {"of_class": np.full(size, column), "audit": np.full(size, drawing)}
            for column, drawing, cells in counts
            for found in [rows_within(cells, group)]
            for size in [len(found["code"])]
        ]
        strata = Strata(**{name: np.concatenate([row[name] for row in rows]) for name in Strata.__dataclass_fields__})
        of = group_of == group
        filled, none = (accepted & (states == OPEN))[of], np.zeros(CLASSES, np.int64)
        labels = Labels((states[of] == PRESENT).sum(0), filled.sum(0), none, np.full(CLASSES, np.nan), none, none)
        certified = certify_domain(strata, labels, DRAWS)
        true = truth_of(truth[of], states[of], accepted[of])
        ok = holds(certified.recall, true.recall)[-1] and holds(certified.missing, true.missing)[-1]
        width = float(certified.recall.high[-1] - certified.recall.low[-1])
        drawn = sum(int(cells["drawn"][:, group].sum()) for _, _, cells in counts)
        result.append((ok, holds(certified.precision, true.precision)[-1], width, drawn))
    return np.array(result, float)


def _counts(part: dict, states: np.ndarray, accepted: np.ndarray, group_of: np.ndarray) -> dict[str, np.ndarray]:
    column, drawn = part["of_class"], part["drawn"]
    of_class = states[:, column], accepted[:, column]
    return count_within(drawn.strata, *of_class, drawn.rows, counted(states, part), group_of, GROUPS)

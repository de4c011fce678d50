"""Measurement of how often the 95 % intervals of single groups of images hold the truth, in simulated projects.

Groups are as unequal as places are, from one with a third of the images to ones with few, and classes are as unequally
frequent in them. Each project goes through the steps of certificate_coverage.py; the intervals are computed by the
app's code
(spmll/statistics/domain_totals.py).
"""

import time
from dataclasses import replace

import numpy as np

from annotator.quality.evidence import MAX_WIDTH_SHARE
from benchmarks.certificate_coverage import (
    CLASSES_PER_PROJECT,
    IMAGES_PER_PROJECT,
    INTERVAL_DRAWS,
    OPEN_STATE,
    SIMULATED_PROJECTS,
    Condition,
    Events,
    check_intervals,
    compute_true_figures,
    find_counted_cells,
    simulate_work,
)
from spmll.labels import PRESENT
from spmll.statistics.certified_recall import LabelTotals, Strata, count_strata_by_domain
from spmll.statistics.domain_totals import certify_domain, select_domain_rows

SIMULATED_GROUPS = 12
AUDIT_CELLS_PER_CLASS = 200  # drawn of each class


MIXED_SHARES, RARE_SHARES, COMMON_SHARES = (0.01, 0.3), (0.003, 0.02), (0.1, 0.5)
LARGE_EVENTS = Events(30, 1.0, answered_whole=False)
GROUP_CONDITIONS = {
    "few answers": Condition(MIXED_SHARES, 2.0, 0.1),
    "early, good model": Condition(MIXED_SHARES, 2.5, 0.1, cells=AUDIT_CELLS_PER_CLASS),
    "late, bad model": Condition(MIXED_SHARES, 0.3, 0.6, cells=AUDIT_CELLS_PER_CLASS),
    "worse than chance": Condition(MIXED_SHARES, -1.5, 0.2, cells=AUDIT_CELLS_PER_CLASS),
    "rare": Condition(RARE_SHARES, 2.5, 0.3, cells=AUDIT_CELLS_PER_CLASS),
    "common": Condition(COMMON_SHARES, 2.0, 0.3, cells=AUDIT_CELLS_PER_CLASS),
    "half answered, two audits": Condition(
        MIXED_SHARES, 2.0, 0.1, audits=2, answered_share=0.5, cells=AUDIT_CELLS_PER_CLASS
    ),
    "auto-accepted": Condition(MIXED_SHARES, 2.5, 0.2, has_auto_accepted=True, cells=AUDIT_CELLS_PER_CLASS),
    "events of 1 to 30": Condition(MIXED_SHARES, 2.0, 0.2, cells=AUDIT_CELLS_PER_CLASS, events=LARGE_EVENTS),
    "events of 1 to 30, late, bad model": Condition(
        MIXED_SHARES, 0.3, 0.6, cells=AUDIT_CELLS_PER_CLASS, events=LARGE_EVENTS
    ),
}
# Not promised: this is what counting the images of whole events, as if drawn one by one, would do.
WHOLE_EVENT_CONDITION = Condition(
    MIXED_SHARES, 0.3, 0.2, cells=AUDIT_CELLS_PER_CLASS, events=replace(LARGE_EVENTS, drawn_whole=True)
)


def measure(projects: int = SIMULATED_PROJECTS, seed: int = 0) -> dict:
    """Measure for each condition how often the intervals of single groups hold the truth."""
    started = time.perf_counter()
    rows = {name: measure_group_coverage(condition, projects, seed) for name, condition in GROUP_CONDITIONS.items()}
    reported = rows | {"events drawn whole": measure_group_coverage(WHOLE_EVENT_CONDITION, projects, seed)}
    promised = [row[kind] for row in rows.values() for kind in ("recall", "shown", "precision")]
    return {
        "bench": "certificate-groups",
        "figures": {f"{name}: {kind}": round(value, 4) for name, row in reported.items() for kind, value in row.items()}
        | {"projects": projects, "seconds": round(time.perf_counter() - started, 1)},
        "ratios": {"coverage_at_least": round(min(promised), 4)},
    }


def measure_group_coverage(condition: Condition, projects: int, seed: int = 0) -> dict[str, float]:
    """Return the shares of groups whose intervals held the truth, and their mean width.

    Returns:
        recall: Of recall and of the missing positives (both must hold); shown: the same of the groups whose figures
            would be shown, as the interval is narrow enough; precision; worst: recall in the group in which it held
            most seldom; width: mean width of the interval of recall; share_shown: the share of groups shown.
    """
    figures = np.array(
        [simulate_groups(np.random.default_rng([seed, number]), condition) for number in range(projects)]
    )
    held, right, width, drawn = np.moveaxis(figures, 2, 0)
    shown = (width <= MAX_WIDTH_SHARE) & (drawn > 0)
    return {
        "recall": float(held.mean()),
        "shown": float(held[shown].mean()) if shown.any() else 1.0,
        "precision": float(right.mean()),
        "worst": float(held.mean(0).min()),
        "width": float(width.mean()),
        "share_shown": float(shown.mean()),
    }


def simulate_groups(rng: np.random.Generator, condition: Condition) -> np.ndarray:
    """Simulate one project; return of each group whether recall and precision held, recall's width, and cells drawn."""
    sizes = rng.integers(1, (condition.events.largest if condition.events else 1) + 1, IMAGES_PER_PROJECT)
    event_of = np.repeat(np.arange(IMAGES_PER_PROJECT), sizes)[:IMAGES_PER_PROJECT]
    weights = 1 / np.arange(1, SIMULATED_GROUPS + 1)
    group_of = rng.choice(SIMULATED_GROUPS, IMAGES_PER_PROJECT, p=weights / weights.sum())[event_of]
    rates = np.exp(rng.uniform(*np.log(condition.shares), size=CLASSES_PER_PROJECT))
    in_groups = np.clip(rates * np.exp(rng.normal(size=(SIMULATED_GROUPS, CLASSES_PER_PROJECT)) - 0.5), 0, 0.9)
    truth = rng.random((IMAGES_PER_PROJECT, CLASSES_PER_PROJECT))[event_of] < in_groups[group_of]
    states = np.full(truth.shape, OPEN_STATE)
    accepted, parts, _ = simulate_work(rng, condition, states, truth, truth, truth, rates, event_of)
    result = []
    counts = [
        (part["of_class"], part["drawing"], _count_strata_cells(part, states, accepted, group_of)) for part in parts
    ]
    for group in range(SIMULATED_GROUPS):
        rows = [
            found | {"of_class": np.full(size, column), "audit": np.full(size, drawing)}
            for column, drawing, cells in counts
            for found in [select_domain_rows(cells, group)]
            for size in [len(found["code"])]
        ]
        strata = Strata(**{name: np.concatenate([row[name] for row in rows]) for name in Strata.__dataclass_fields__})
        of = group_of == group
        filled, none = (accepted & (states == OPEN_STATE))[of], np.zeros(CLASSES_PER_PROJECT, np.int64)
        labels = LabelTotals(
            (states[of] == PRESENT).sum(0), filled.sum(0), none, np.full(CLASSES_PER_PROJECT, np.nan), none, none
        )
        certified = certify_domain(strata, labels, INTERVAL_DRAWS)
        true = compute_true_figures(truth[of], states[of], accepted[of])
        ok = check_intervals(certified.recall, true.recall)[-1] and check_intervals(certified.missing, true.missing)[-1]
        width = float(certified.recall.high[-1] - certified.recall.low[-1])
        drawn = sum(int(cells["drawn"][:, group].sum()) for _, _, cells in counts)
        result.append((ok, check_intervals(certified.precision, true.precision)[-1], width, drawn))
    return np.array(result, float)


def _count_strata_cells(
    part: dict, states: np.ndarray, accepted: np.ndarray, group_of: np.ndarray
) -> dict[str, np.ndarray]:
    column, drawn = part["of_class"], part["drawn"]
    of_class = states[:, column], accepted[:, column]
    return count_strata_by_domain(
        drawn.strata,
        *of_class,
        drawn.rows,
        find_counted_cells(states[:, part["of_class"]], part["drawn"], part["unbiased"]),
        group_of,
        SIMULATED_GROUPS,
    )

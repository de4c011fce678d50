"""Measurement of how often the quality report's intervals of recall hold the truth, at all looks together.

A look follows every ten audit answers. The old method took every answer as right and made each interval for a single
look, the new one is that of the quality report (spmll/statistics/allowed_mistakes.py).
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from annotator.benchmark.certificate.simulated_projects import (
    PROJECT_KINDS,
    ErringProject,
    ProjectKind,
    ProjectLook,
)
from annotator.benchmark.reports import Report, ReportTable
from annotator.errors import AnnotatorError
from spmll.statistics.allowed_mistakes import (
    ASSUMED_MISTAKE_SHARE,
    ASSUMED_RATES,
    ENOUGH_REPEATS,
    allow_for_mistakes,
    select_allowed_mistakes,
)
from spmll.statistics.bounds import CONFIDENCE, Bounds
from spmll.statistics.certified_recall import certify
from spmll.statistics.intervals import exact_interval

MISTAKE_SHARES = (0.0, 0.01, 0.02, 0.05)
OLD_METHOD, NEW_METHOD = "old", "new"
INTERVAL_DRAWS, OLD_INTERVAL_DRAWS = 400, 200  # fewer where the ends are less extreme
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class _ProjectOutcome:
    """What one method shows of one project over all looks, (C + 1,) each but `is_wrong_stop`."""

    # every look's interval contains the truth
    held: np.ndarray
    # width at the last look
    width: np.ndarray
    # whether the target was certified at some look, and whether recall was lower then
    stop: tuple[bool, bool]


def measure_certificates(
    kinds: tuple[str, ...] = (), projects: int = 100, target: float = 0.95, seed: int = 0
) -> dict[str, Any]:
    """Measure coverage for each kind of project (all without names) and each of MISTAKE_SHARES.

    Raises AnnotatorError for an unknown kind.
    """
    if unknown := set(kinds) - PROJECT_KINDS.keys():
        names = ", ".join(map(repr, PROJECT_KINDS))
        raise AnnotatorError(f"Unknown kind of project {min(unknown)!r}. Choose one of: {names}.")
    started = time.perf_counter()
    rows = [
        {"kind": name, "mistakes": share} | _measure_kind(PROJECT_KINDS[name], share, projects, target, seed)
        for name in kinds or PROJECT_KINDS
        for share in MISTAKE_SHARES
    ]
    return {
        "bench": "certificate",
        "rows": rows,
        "projects": projects,
        "target": target,
        "seed": seed,
        "seconds": round(time.perf_counter() - started, 1),
    }


def _measure_kind(kind: ProjectKind, share: float, projects: int, target: float, seed: int) -> dict[str, Any]:
    found: dict[str, list[_ProjectOutcome]] = {OLD_METHOD: [], NEW_METHOD: []}
    looks, assumed = 0, 0
    for number in range(projects):
        project = ErringProject(np.random.default_rng([seed, number]), kind, share)
        shown: dict[str, list[tuple[np.ndarray, Bounds]]] = {OLD_METHOD: [], NEW_METHOD: []}
        for look in project.answer_audits():
            basis, recall = compute_recall(look)
            shown[NEW_METHOD].append((look.recall, recall))
            shown[OLD_METHOD].append(
                (look.recall, certify(look.answered, replace(look.labels, looks=0), INTERVAL_DRAWS).recall)
            )
            looks += 1
            assumed += basis == ASSUMED_RATES
        for method, of_method in shown.items():
            found[method].append(_judge_looks(of_method, target))
    return {"looks": looks / projects, "assumed": assumed / looks} | {
        method: _summarize_outcomes(outcomes) for method, outcomes in found.items()
    }


def compute_recall(look: ProjectLook) -> tuple[str, Bounds]:
    """Return the basis and interval of recall as the quality report certifies it."""
    basis, allowed = select_allowed_mistakes(look.repeats, None, look.labels.present, look.absent, INTERVAL_DRAWS)
    certified = certify(look.strata, look.labels, INTERVAL_DRAWS)
    return basis, allow_for_mistakes(certified, look.labels, look.absent, look.open, allowed)


def _judge_looks(shown: list[tuple[np.ndarray, Bounds]], target: float) -> _ProjectOutcome:
    held = np.ones(len(shown[0][0]), bool)
    stop = (False, False)
    for truth, recall in shown:
        held &= np.isnan(truth) | ((recall.low <= truth + TOLERANCE) & (recall.high >= truth - TOLERANCE))
        if not stop[0] and recall.low[-1] >= target:
            stop = (True, bool(truth[-1] < target))
    return _ProjectOutcome(held, shown[-1][1].high - shown[-1][1].low, stop)


def _summarize_outcomes(outcomes: list[_ProjectOutcome]) -> dict[str, Any]:
    held, width = (np.array([getattr(outcome, name) for outcome in outcomes]) for name in ("held", "width"))
    stopped, wrongly = np.array([outcome.stop for outcome in outcomes]).sum(0).tolist()
    low, high = exact_interval(int(held[:, -1].sum()), len(held))
    return {
        "coverage": float(held[:, -1].mean()),
        "coverage_limits": [low, high],
        "class_coverage": float(held[:, :-1].mean()),
        "width": float(width[:, -1].mean()),
        "class_width": float(width[:, :-1].mean()),
        "stopped": stopped,
        "stopped_wrongly": wrongly,
    }


def list_failures(result: dict[str, Any]) -> list[str]:
    """Return where the new method's joint coverage is below 95%, even at its upper binomial limit."""
    return [
        f"{row['kind']}, {row['mistakes']:.0%} wrong: {row[NEW_METHOD]['coverage']:.1%}"
        for row in result["rows"]
        if row[NEW_METHOD]["coverage_limits"][1] < CONFIDENCE
    ]


def build_coverage_report(result: dict[str, Any]) -> Report:
    """Return the report: joint coverage and widths of the old and new intervals."""
    rows = [
        [
            row["kind"],
            f"{row['mistakes']:.0%}",
            *(f"{row[method]['coverage']:.1%}" for method in (OLD_METHOD, NEW_METHOD)),
            f"{row[NEW_METHOD]['coverage_limits'][0]:.1%} to {row[NEW_METHOD]['coverage_limits'][1]:.1%}",
            *(f"{row[method]['class_coverage']:.1%}" for method in (OLD_METHOD, NEW_METHOD)),
            *(f"{row[method]['width']:.3f}" for method in (OLD_METHOD, NEW_METHOD)),
            *(f"{row[method]['class_width']:.3f}" for method in (OLD_METHOD, NEW_METHOD)),
            *(f"{row[method]['stopped']} ({row[method]['stopped_wrongly']})" for method in (OLD_METHOD, NEW_METHOD)),
            f"{row['assumed']:.0%}",
        ]
        for row in result["rows"]
    ]
    headings = [
        "kind of project", "wrong", "old", "new", "95% limits", "class, old", "class, new", "width, old", "width, new",
        "class width, old", "class width, new", "stops, old", "stops, new", "assumed",
    ]  # fmt: skip
    failures = list_failures(result)
    return Report(
        description=[
            f"Share of {result['projects']:,} simulated projects in which every look's 95% interval of recall contains "
            f"the truth; a look after every 10 audit answers, {result['seconds']:,.0f} s",
        ],
        tables=[ReportTable(headings, rows)],
        explanations=[
            "wrong: share of wrong answers. old: every answer is taken as right, each interval is for a single look. "
            "new: as in the quality report.",
            "class: single classes instead of all together. width: at the last look. stops: projects in which the "
            f"lower end reached {result['target']:.0%} (in brackets: and recall was lower). assumed: share of looks "
            f"that assume at most {ASSUMED_MISTAKE_SHARE:.0%} wrong answers, because fewer than {ENOUGH_REPEATS} "
            "labels of each state were asked again.",
        ],
        command=result.get("command", ""),
        remarks=[f"Below 95%: {'; '.join(failures)}"] if failures else ["No kind is below 95% beyond chance."],
    )

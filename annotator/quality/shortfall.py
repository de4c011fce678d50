"""What a certificate lacks, and what to do about it, in words."""

import numpy as np

from annotator.quality.certificate_records import Certificate, Row


def lacks(found: Certificate, target: float) -> list[str]:
    """What is missing from a certificate, in sentences, the most important first; [] when nothing is.

    target    the recall that is asked for
    """
    said = []
    unknown, where = found.overall.unknown, "then answer it in the audit grid on the Grid page"
    if not found.classes:
        return ["There are no classes yet, so there is nothing to certify."]
    if not found.audits and unknown and not found.overall.waiting:
        said.append(
            f"No audit yet: nothing is known of the {unknown:,} cells that nobody has decided. Draw one, {where}."
        )
    elif not found.audits and unknown:
        said.append(f"No audit has been answered yet: nothing is known of the {unknown:,} cells nobody has decided.")
    if found.overall.waiting:
        said.append(f"{found.overall.waiting:,} drawn cells wait for an answer in the audit grid on the Grid page.")
    if found.audits and found.uncovered:
        said.append(
            f"{found.uncovered:,} images were added after the drawing: any of them may show anything. Draw again."
        )
    blank = [one.name for one in found.classes if found.audits and one.unknown and not one.audited]
    if blank:
        said.append(f"No cell of these classes has been audited: {_listed(blank)}.")
    if not found.relabels.present and found.overall.people:
        said.append(
            "Precision is not measured: people's labels are taken as right. Every audit also asks again about some of "
            "them, blind."
        )
    few = [(one.name, _more(one, target)) for one in found.classes if one.audited and one.recall.low < target]
    needed = [f"{name} about {more:,}" for name, more in few if more]
    behind = [name for name, more in few if not more]
    if needed:
        said.append(
            f"Audited cells that would show {100 * target:g} % recall, if they bring nothing new: {_listed(needed)}."
        )
    if behind:
        said.append(f"More missing ones must be found before {100 * target:g} % can be reached: {_listed(behind)}.")
    return said


def _more(row: Row, target: float) -> int | None:
    """How many more audited cells would bring the interval's low end to the target; None: too many are missing."""
    allowed = (row.people + row.accepted) * (1 - target) / target - (row.missing.estimate or 0.0)
    if allowed < 1:
        return None
    # A sample of n cells without a find leaves up to about 3.7 / n of the rest (-ln 0.025; "rule of three").
    needed = min(row.unknown, int(np.ceil(-np.log(0.025) * row.unknown / allowed)))
    return max(1, needed - row.audited)


def _listed(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")

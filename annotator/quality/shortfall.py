"""What a certificate lacks, and what to do about it, in words."""

import numpy as np

from annotator.quality.certificate_records import Certificate, Row


def lacks(certificate: Certificate, target: float) -> list[str]:
    """What is missing from a certificate, in sentences, the most important first; [] when nothing is.

    target    the recall that is asked for
    """
    sentences = []
    unknown, waiting = certificate.overall.unknown, certificate.overall.waiting
    if not certificate.classes:
        return ["There are no classes yet, so there is nothing to certify."]
    if not certificate.audits and unknown and not waiting:
        sentences.append(
            f"No audit yet: nothing is known of the {unknown:,} cells that nobody has decided. Draw one, then answer "
            "it in the audit grid on the Grid page."
        )
    elif not certificate.audits and unknown:
        sentences.append(
            f"No audit has been answered yet: nothing is known of the {unknown:,} cells nobody has decided."
        )
    if waiting:
        sentences.append(f"{waiting:,} drawn cells wait for an answer in the audit grid on the Grid page.")
    if certificate.audits and certificate.uncovered:
        sentences.append(
            f"{certificate.uncovered:,} images were added after the audit: any of them may show anything. Draw again."
        )
    unaudited = [row.name for row in certificate.classes if certificate.audits and row.unknown and not row.audited]
    if unaudited:
        sentences.append(f"No cell of these classes has been audited: {_listed(unaudited)}.")
    if not certificate.relabels.present and certificate.overall.people:
        sentences.append(
            "Precision is not measured: people's labels are taken as right. Every audit also asks again about some of "
            "them."
        )
    below = [row for row in certificate.classes if row.audited and row.recall.low < target]
    needed = [(row.name, _needed(row, target)) for row in below]
    enough = [f"{name} about {cells:,}" for name, cells in needed if cells]
    never = [name for name, cells in needed if not cells]
    if enough:
        sentences.append(
            f"Audited cells that would show {100 * target:g} % recall, if they bring nothing new: {_listed(enough)}."
        )
    if never:
        sentences.append(f"More missing ones must be found before {100 * target:g} % can be reached: {_listed(never)}.")
    return sentences


def _needed(row: Row, target: float) -> int | None:
    """How many more audited cells would raise the low end of recall to the target; None: too many are missing."""
    allowed = (row.people + row.accepted) * (1 - target) / target - (row.missing.estimate or 0.0)
    if allowed < 1:
        return None
    # A sample of n cells without a positive leaves up to about 3.7 / n of the rest (-ln 0.025; "rule of three").
    needed = min(row.unknown, int(np.ceil(-np.log(0.025) * row.unknown / allowed)))
    return max(1, needed - row.audited)


def _listed(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")

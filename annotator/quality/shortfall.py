"""Advice on what a quality report lacks and how to improve it."""

import numpy as np

from annotator.humanize import format_count
from annotator.quality.certificate_records import Certificate, CertificateRow


def list_shortfalls(certificate: Certificate, target: float) -> list[str]:
    """Return sentences on what is needed to reach the target recall, most important first."""
    sentences = []
    unknown, waiting = certificate.overall.unknown, certificate.overall.waiting
    if not certificate.classes:
        return ["No classes yet. Add some on the Classes page."]
    if not certificate.audits and unknown and not waiting:
        sentences.append(
            f"Start an audit: {format_count(unknown, 'unanswered pair')} may hide labels. Answer it in the audit grid."
        )
    elif not certificate.audits and unknown:
        sentences.append(f"Answer the audit: {format_count(unknown, 'unanswered pair')} may hide labels.")
    if waiting:
        sentences.append(f"Check {format_count(waiting, 'pair')} in the audit grid on the Grid page.")
    if certificate.audits and certificate.uncovered:
        added = format_count(certificate.uncovered, "image was", "images were")
        sentences.append(f"Start another audit: {added} added after the last one.")
    unaudited = [row.name for row in certificate.classes if certificate.audits and row.unknown and not row.audited]
    if unaudited:
        sentences.append(f"These classes have no audit answers yet: {_join_names(unaudited)}.")
    if not certificate.relabels.present and certificate.overall.people:
        sentences.append(
            "Precision is not measured yet: people's labels are assumed to be right. Every audit re-asks some."
        )
    if certificate.people > 1 and not certificate.compared:
        sentences.append("What people miss is not measured yet: let several answer the same images (Assignment page).")
    if certificate.compared and certificate.unsettled:
        sentences.append(
            f"Settle {format_count(certificate.unsettled, 'pair')} on which people differ; they count either way until "
            "then."
        )
    of_events = certificate.overall.events
    if of_events and unknown and not of_events.audited and not waiting:
        sentences.append("Recall of events is not measured yet: start an audit that draws events.")
    below = [row for row in certificate.classes if row.audited and row.recall.low < target]
    needed = [(row.name, _count_needed_answers(row, target)) for row in below]
    enough = [f"{name} about {cells:,}" for name, cells in needed if cells]
    never = [name for name, cells in needed if not cells]
    if enough:
        sentences.append(
            f"Audit answers needed to show {100 * target:g} % recall, if they find nothing new: {_join_names(enough)}."
        )
    if never:
        sentences.append(
            f"More missing labels must be found before {100 * target:g} % can be reached: {_join_names(never)}."
        )
    return sentences


def _count_needed_answers(row: CertificateRow, target: float) -> int | None:
    allowed = (row.people + row.accepted) * (1 - target) / target - (row.missing.estimate or 0.0)
    if allowed < 1:
        return None
    # A sample of n cells without a positive leaves up to about 3.7 / n of the rest (-ln 0.025; "rule of three").
    needed = min(row.unknown, int(np.ceil(-np.log(0.025) * row.unknown / allowed)))
    return max(1, needed - row.audited)


def _join_names(names: list[str], max_names: int = 8) -> str:
    return ", ".join(names[:max_names]) + (f" and {len(names) - max_names} more" if len(names) > max_names else "")

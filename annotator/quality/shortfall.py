"""Advice on what a quality report lacks and how to improve it."""

import math

from annotator.humanize import format_count
from annotator.quality.certificate_records import Certificate, CertificateRow
from spmll.statistics.allowed_mistakes import ASSUMED_MISTAKE_SHARE, ASSUMED_RATES, ENOUGH_REPEATS
from spmll.statistics.bounds import compute_tail

MANY_ANSWERS = 500  # audit answers; where the target takes more, the report says so before anyone starts
NORMAL_QUANTILE = 2.24  # of the tail 0.0125 of a first look


def list_shortfalls(certificate: Certificate, target: float) -> list[str]:
    """Return sentences on what is needed to reach the target recall, most important first."""
    sentences = []
    unknown, waiting = certificate.overall.unknown, certificate.overall.waiting
    if not certificate.classes:
        return ["No classes yet. Add some on the Classes page."]
    sentences += _describe_effort(certificate, target)
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
    below = [row for row in certificate.classes if row.audited and row.recall_allowing.low < target]
    needed = [(row, _count_needed_answers(certificate, row, target)) for row in below]
    enough = [f"{row.name} about {cells:,}" for row, cells in needed if cells]
    few = [row.name for row, _ in needed if _count_allowed(certificate, row, target) < 1]
    never = [row.name for row, cells in needed if not cells and row.name not in few]
    if enough:
        sentences.append(
            f"Audit answers needed to show {100 * target:g} % recall, if they find nothing new: {_join_names(enough)}."
        )
    if never:
        sentences.append(
            f"More missing labels must be found before {100 * target:g} % can be reached: {_join_names(never)}."
        )
    if few:
        sentences.append(
            f"Too few labels to show {100 * target:g} % recall while answers may be wrong ({certificate.allowance}): "
            f"{_join_names(few)}."
        )
    return sentences


def _describe_effort(certificate: Certificate, target: float) -> list[str]:
    """Return sentences on a target that cannot be shown, or that takes more than MANY_ANSWERS audit answers."""
    share = f"{100 * target:g} % recall"
    if certificate.mistakes == ASSUMED_RATES and target >= 1 - ASSUMED_MISTAKE_SHARE:
        return [
            f"{share} cannot be shown {certificate.allowance}: so many labels are missed. Audits that ask "
            f"{ENOUGH_REPEATS} or more labels of each state again can show that fewer are wrong."
        ]
    answers = _count_needed_answers(certificate, certificate.overall, target)
    if certificate.overall.recall_allowing.low >= target or (answers or 0) <= MANY_ANSWERS:
        return []
    return [f"{share} of all classes together takes about {answers:,} audit answers, if they find nothing new."]


def count_allowed_missing(labeled: int, target: float, mistake_share: float = ASSUMED_MISTAKE_SHARE) -> float:
    """Return how many missing positives the target allows, after those that wrong answers may have missed."""
    missed = labeled * mistake_share / (1 - mistake_share)
    return labeled * (1 - target) / target - missed - NORMAL_QUANTILE * math.sqrt(missed)


def _count_allowed(certificate: Certificate, row: CertificateRow, target: float) -> float:
    share = ASSUMED_MISTAKE_SHARE if certificate.mistakes == ASSUMED_RATES else 0.0
    return count_allowed_missing(row.people + row.accepted, target, share)


def _count_needed_answers(certificate: Certificate, row: CertificateRow, target: float) -> int | None:
    allowed = _count_allowed(certificate, row, target) - (row.missing.estimate or 0.0)
    if allowed < 1:
        return None
    # A sample of n cells without a positive leaves up to about -ln(tail) / n of the rest ("rule of three").
    tail = float(compute_tail(len(certificate.audits) + 1))
    needed = min(row.unknown, math.ceil(-math.log(tail) * row.unknown / allowed))
    return max(1, needed - row.audited)


def _join_names(names: list[str], max_names: int = 8) -> str:
    return ", ".join(names[:max_names]) + (f" and {len(names) - max_names} more" if len(names) > max_names else "")

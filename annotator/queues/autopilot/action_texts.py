"""Texts of the Autopilot page: what an action asks and why, or why there is none."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from annotator.humanize import format_count, format_duration
from annotator.quality import rule_out
from annotator.quality.certificate_records import DEFAULT_TARGET_RECALL, Certificate
from annotator.quality.evidence import IF_ANSWERS_ARE_RIGHT, format_share_interval
from annotator.queues.autopilot.acquisition import Candidate
from annotator.queues.autopilot.complete_project import CompleteProject, PairOffer
from annotator.queues.image_queue import COMING_BACK_MESSAGE, describe_open_elsewhere
from annotator.records import Run, WantedActions
from annotator.snapshot import suggestions
from annotator.snapshot.closing.account import Account
from annotator.store.database.database import Database
from annotator.store.labels import image_overlap
from annotator.store.people import assignment, leases

MIN_KNOWN_TILES = 12  # tiles of a class that were answered, from which on the next grid says how many it brings
MIN_BARREN_TILES = 48  # tiles of a class in a row without a positive that the line speaks of
COMPLETE_HEADING = "Complete"
BEST_VALUE_REASON = "It adds the most correct labels for your time."
BLIND_REASON = "Others are asked about it, too. Nobody sees what others answer."
REASON_TEXTS = {
    "exploration": "It has no label yet. The model learns from it.",
    "leftover": "It is one of the last incomplete images.",
    "random": "It was drawn at random, not chosen by the model.",
}
GRID_REASONS = {
    "": "The model has not learned this class yet.",
    "leftover": "They are the last images without an answer about this class.",
    "random": "They were drawn at random, not chosen by the model.",
}
SEARCHED_IMAGES = {"random": "random images", "leftover": "of the last open images"}


@dataclass(frozen=True)
class CandidateEvidence:
    """Numbers that the texts about candidate actions quote."""

    names: Mapping[int, str]
    account: Account
    # class id -> number of random images labeled absent
    random_absent: Mapping[int, int]
    # likewise for unusual images
    unusual_absent: Mapping[int, int]
    # classes with an example
    found: Collection[int] = ()


def format_candidate_line(candidate: Candidate, evidence: CandidateEvidence, image: str = "this image") -> str:
    """Return a candidate's question, gain and duration in one line. `image` is "this image" only on screen."""
    time = _format_seconds(candidate.seconds)
    if candidate.kind == "grid":
        return _format_grid_line(candidate, evidence)
    if candidate.kind == "search":
        which = SEARCHED_IMAGES.get(candidate.reason, "unusual images")
        return f"Does any show {evidence.names[candidate.class_id]}? {len(candidate.cells)} {which} ({time})"
    if candidate.kind == "relabel":
        name, state = evidence.names[candidate.class_id], "present" if candidate.start_present else "absent"
        return f"Check {format_count(len(candidate.cells), 'answer')} again: {name} marked {state} ({time})"
    if candidate.kind == "click":
        return f"Label {image} ({time})"  # one class or all of them: the page says which
    if candidate.reason:
        return _format_mark_everything(image, time)
    missing = _format_few(candidate.expected_positives)
    if others := sum(len(behind) for behind in candidate.event_images.values()):
        image = f"{image} and {format_count(others, 'other')} of its event"
    return f"Mark everything on {image}: probably {missing} {'label' if missing == '1' else 'labels'} missing ({time})"


def format_candidate_reason(candidate: Candidate, evidence: CandidateEvidence) -> str:
    """Return the reason why a candidate comes next, in words."""
    if candidate.kind == "search":
        return _format_search_reason(candidate, evidence)
    return REASON_TEXTS.get(candidate.reason, BEST_VALUE_REASON)


def _format_grid_line(candidate: Candidate, evidence: CandidateEvidence) -> str:
    name, tiles, time = (
        evidence.names[candidate.class_id],
        str(len(candidate.cells)),
        _format_seconds(candidate.seconds),
    )
    if candidate.event_images:
        tiles = f"{format_count(candidate.decided_cells, 'image')} on {format_count(len(candidate.cells), 'tile')}"
    if evidence.account.answered_tiles.get(candidate.class_id, 0) < MIN_KNOWN_TILES:
        most = (
            "probably most of" if candidate.expected_positives >= candidate.decided_cells / 2 else "the first grid of"
        )
        return f"Which show {name}? {most.capitalize()} {tiles} ({time})"
    barren = evidence.account.tiles_without_positive.get(candidate.class_id, 0)
    since = f". The last {barren} tiles showed none." if barren >= MIN_BARREN_TILES else ""
    return f"Which show {name}? Probably {_format_few(candidate.expected_positives)} of {tiles} ({time}){since}"


def _format_search_reason(candidate: Candidate, evidence: CandidateEvidence) -> str:
    if candidate.class_id in evidence.found:
        return GRID_REASONS[candidate.reason]
    absent, searched = (
        evidence.random_absent.get(candidate.class_id, 0),
        evidence.unusual_absent.get(candidate.class_id, 0),
    )
    sentences = ["No image is known to show it yet."]
    if searched:
        sentences.append(f"None of {format_count(searched, 'unusual image')} did so far.")
    if absent >= MIN_KNOWN_TILES:
        sentences.append(f"None of {format_count(absent, 'random image')} did, so {format_max_share(absent)}.")
    return " ".join(sentences)


def format_max_share(absent: int) -> str:
    """Return in words the maximum share of images with a class, after `absent` random images without it."""
    return f"at most {100 * rule_out.compute_max_share(absent):.1f} % of all do (95 %)"


def format_reading_line(seconds: float) -> str:
    """Return the line that describes answering an image in all classes, blind."""
    return _format_mark_everything("this image", _format_seconds(seconds))


def format_audit_line(tiles: int, name: str, seconds: float) -> str:
    """Return the line that describes an audit grid of the class `name`."""
    return f"Audit: which of {tiles} random images show {name}? ({_format_seconds(seconds)})"


def explain_empty(
    db: Database, wanted: WantedActions, counts: Mapping[str, int], has_classes: bool, run: Run | None
) -> str:
    """Return the reason why Autopilot has no action.

    Args:
        counts: Number of images by stage.
    """
    if not counts["all"]:
        return "No images yet. Add a folder on the Images page."
    if not has_classes:
        return "No classes yet. Add some on the Classes page."
    if assignment.has_assigned_classes(db, wanted.annotator):
        return "Nothing left to ask about your classes. The Grid page shows the rest."
    if image_overlap.load_overlap(db) and (others := image_overlap.load_progress(db).waiting):
        wait = format_count(others, "image waits", "images wait")
        return f"Nothing left to do here: {wait} for the blind answers of other people."
    if open_elsewhere := leases.count_held_by_others(db, wanted.holder):
        return f"Nothing left to do here: {describe_open_elsewhere(open_elsewhere)}. {COMING_BACK_MESSAGE}"
    if run is None:
        missing = suggestions.count_labels_until_first_run(db, counts)
        if missing:
            return f"Nothing left to show. The model starts after {format_count(missing, 'more labeled image')}."
    if counts["complete"] < counts["all"]:
        return "Nothing left to ask. The Progress page says what is unanswered."
    return "Every class of every image has an answer. The Certificate page says how sure that is."


def format_target_lines(certificate: Certificate) -> tuple[str, str]:
    """Return the heading and the line of a project that reaches its target recall with unanswered labels."""
    overall = certificate.overall
    return (
        f"{100 * DEFAULT_TARGET_RECALL:g} % recall reached",
        f"With 95 % confidence, recall of all classes together is {format_share_interval(overall.recall_allowing)} "
        f"{certificate.allowance}, and {format_share_interval(overall.recall)} {IF_ANSWERS_ARE_RIGHT}. "
        f"{format_count(overall.unknown, 'pair is', 'pairs are')} unanswered.",
    )


def format_findings_line(complete: CompleteProject) -> str:
    """Return a sentence on what the newest audit found, or ""."""
    return f"The audit: {complete.findings}." if complete.findings else ""


def format_complete_line(complete: CompleteProject) -> str:
    """Return one line on the labels of a project in which every label is answered."""
    progress, labels = complete.progress, sum(images for _, images in complete.labels)
    held = f"{format_count(progress.images, 'image')}, {format_count(labels, 'label')}"
    if progress.share == 1:
        return f"Every class of every image has an answer: {held}."
    # Those of images that cannot be read, and answers that are hidden from this person.
    parts = {
        "answered": progress.pairs_answered,
        "accepted by the model": progress.pairs_accepted,
        "ruled out after a sample": progress.pairs_ruled_out,
        "implied by answers": progress.pairs_implied,
        "not shown": progress.pairs_open,
    }
    settled = ", ".join(f"{pairs:,} {how}" for how, pairs in parts.items() if pairs)
    return f"Nothing is left to answer: {held}. Of {format_count(progress.pairs, 'pair')}: {settled}."


def format_doubted_line(doubted: PairOffer | None) -> str:
    """Return one line on the number of labels that the model contradicts, and the time to check them."""
    if doubted is None:
        return "There is no model to compare the answers with."
    if not doubted.pairs:
        return "The model contradicts no answer that is not checked yet."
    few, answers = round(doubted.changes), f"of {format_count(doubted.pairs, 'answer')} that the model contradicts"
    how_many = f"About {few} {answers} may be wrong" if few else f"Probably none {answers} is wrong"
    return f"{how_many}. {_format_about_time(doubted.seconds)}."


def format_audit_offer_line(complete: CompleteProject) -> str:
    """Return one line on the effort and the purpose of an audit."""
    offer = complete.open_audit
    if offer.pairs:
        pairs = format_count(offer.pairs, "pair of an audit is", "pairs of an audit are")
        return f"{pairs} unanswered. {_format_about_time(offer.seconds)}."
    finds = "how many labels are missing" if complete.audit_finds == "missing" else "how many answers are wrong"
    offer = complete.new_audit
    return f"An audit of {format_count(offer.pairs, 'random pair')} tells {finds}. {_format_about_time(offer.seconds)}."


def _format_about_time(seconds: float) -> str:
    return f"About {format_duration(seconds)}"


def _format_mark_everything(image: str, time: str) -> str:
    return f"Mark everything on {image} ({time})"


def _format_few(number: float) -> str:
    return f"{number:.0f}" if number >= 1.5 else "1" if number >= 0.75 else "0 or 1"


def _format_seconds(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"

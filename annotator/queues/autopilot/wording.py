"""The words of the Autopilot page: one line for each action, and why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass

from annotator.quality import rule_out
from annotator.queues.annotate import BACK, open_on_other_pages
from annotator.queues.autopilot.account import Account
from annotator.queues.autopilot.acquisition import Candidate
from annotator.queues.autopilot.finishing import Complete, Offer
from annotator.records import Run, WantedActions
from annotator.shares import counted, seconds_in_words
from annotator.snapshot import suggestions
from annotator.store.database.database import Database
from annotator.store.labels import overlap as readings
from annotator.store.people import assignment, leases

KNOWN = 12  # tiles of a class that were answered, from which on the next grid says how many it brings
BARREN = 48  # tiles of a class in a row without a positive that the line speaks of
MOST = "It adds the most correct labels for your time."
BLIND = "Others are asked about it, too. Nobody sees what others answer."
REASONS = {
    "exploration": "It has no label yet. The model learns from it.",
    "leftover": "It is one of the last incomplete images.",
    "random": "It was drawn at random, not chosen by the model.",
}


@dataclass(frozen=True)
class Evidence:
    """What the words about a candidate rest on.

    Attributes:
        names: Class id -> name.
        account: What was promised and found.
        absent: Class id -> random images on which a class without an example was answered absent.
        searched: The same of unusual images.
    """

    names: Mapping[int, str]
    account: Account
    absent: Mapping[int, int]
    searched: Mapping[int, int]


def candidate_line(candidate: Candidate, evidence: Evidence, image: str = "this image") -> str:
    """Return one line on what a candidate asks, what it brings and how long it takes.

    How many positives a grid brings is said only of a class of which a grid was answered before.

    Args:
        candidate: The candidate.
        evidence: What the words rest on.
        image: What an image is called: another one than that on screen is not "this image".
    """
    time = _seconds(candidate.seconds)
    if candidate.kind == "grid":
        return _grid_line(candidate, evidence)
    if candidate.kind == "search":
        which = "random" if candidate.reason == "random" else "unusual"
        return f"Does any show {evidence.names[candidate.class_id]}? {len(candidate.cells)} {which} images ({time})"
    if candidate.kind == "relabel":
        name, state = evidence.names[candidate.class_id], "present" if candidate.start_present else "absent"
        return f"Check {counted(len(candidate.cells), 'answer')} again: {name} marked {state} ({time})"
    if candidate.kind == "click":
        return f"Label one class on {image} ({time})"
    if candidate.reason:
        return _everything(image, time)
    missing = _few(candidate.positives)
    if others := sum(len(behind) for behind in candidate.others.values()):
        image = f"{image} and {counted(others, 'other')} of its event"
    return f"Mark everything on {image}: probably {missing} {'label' if missing == '1' else 'labels'} missing ({time})"


def candidate_reason(candidate: Candidate, evidence: Evidence) -> str:
    """Return why a candidate comes next, in one or two sentences, with what is known of it."""
    if candidate.kind == "search":
        return _search_reason(candidate, evidence)
    return REASONS.get(candidate.reason, MOST)


def _grid_line(candidate: Candidate, evidence: Evidence) -> str:
    name, tiles, time = evidence.names[candidate.class_id], str(len(candidate.cells)), _seconds(candidate.seconds)
    if candidate.others:
        tiles = f"{counted(candidate.decided, 'image')} on {counted(len(candidate.cells), 'tile')}"
    if evidence.account.asked.get(candidate.class_id, 0) < KNOWN:
        most = "probably most of" if candidate.positives >= candidate.decided / 2 else "the first grid of"
        return f"Which show {name}? {most.capitalize()} {tiles} ({time})"
    barren = evidence.account.barren.get(candidate.class_id, 0)
    since = f". The last {barren} tiles showed none." if barren >= BARREN else ""
    return f"Which show {name}? Probably {_few(candidate.positives)} of {tiles} ({time}){since}"


def _search_reason(candidate: Candidate, evidence: Evidence) -> str:
    absent, searched = evidence.absent.get(candidate.class_id, 0), evidence.searched.get(candidate.class_id, 0)
    sentences = ["No image is known to show it yet."]
    if searched:
        sentences.append(f"None of {counted(searched, 'unusual image')} did so far.")
    if absent >= KNOWN:
        sentences.append(f"None of {counted(absent, 'random image')} did, so {at_most(absent)}.")
    return " ".join(sentences)


def at_most(absent: int) -> str:
    """Return how many images show a class of which so many random images showed none, in words."""
    return f"at most {100 * rule_out.at_most(absent):.1f} % of all do (95 %)"


def reading_line(seconds: float) -> str:
    """Return the line of an image that several people answer blind."""
    return _everything("this image", _seconds(seconds))


def audit_line(tiles: int, name: str, seconds: float) -> str:
    """Return the line of an audit grid of this many tiles of one class."""
    return f"Audit: which of {tiles} random images show {name}? ({_seconds(seconds)})"


def empty(db: Database, wanted: WantedActions, counts: Mapping[str, int], has_classes: bool, run: Run | None) -> str:
    """Return why there is no action.

    Args:
        db: The project's database.
        wanted: The request of the page.
        counts: Images by stage (store/labels/counts.py).
        has_classes: Whether the project has classes.
        run: The current run; None before the first.
    """
    if not counts["all"]:
        return "No images yet. Add a folder on the Images page."
    if not has_classes:
        return "No classes yet. Add some on the Classes page."
    if assignment.has_classes(db, wanted.annotator):
        return "Nothing left to ask about your classes. The Grid page shows the rest."
    if readings.overlap(db) and (others := readings.readings(db).waiting):
        wait = counted(others, "image waits", "images wait")
        return f"Nothing left to do here: {wait} for the blind answers of other people."
    if open_elsewhere := leases.held_by_others(db, wanted.holder):
        return f"Nothing left to do here: {open_on_other_pages(open_elsewhere)}. {BACK}"
    if run is None:
        missing = suggestions.labels_until_first_run(db, counts)
        if missing:
            return f"Nothing left to show. The model starts after {counted(missing, 'more labeled image')}."
    if counts["complete"] < counts["all"]:
        return "Nothing left to ask. The Progress page says what is unanswered."
    return "Every class of every image has an answer. The Certificate page says how sure that is."


def complete_line(complete: Complete) -> str:
    """Return what a project without an open pair holds, in one line."""
    progress, labels = complete.progress, sum(images for _, images in complete.labels)
    held = f"{counted(progress.images, 'image')}, {counted(labels, 'label')}"
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
    return f"Nothing is left to answer: {held}. Of {counted(progress.pairs, 'pair')}: {settled}."


def doubted_line(doubted: Offer | None) -> str:
    """Return what checking the answers that the model contradicts would ask."""
    if doubted is None:
        return "There is no model to compare the answers with."
    if not doubted.pairs:
        return "The model contradicts no answer that is not checked yet."
    return f"{counted(doubted.pairs, 'answer')} may be wrong: the model says otherwise. {_about(doubted.seconds)}."


def audit_offer_line(complete: Complete) -> str:
    """Return what an audit asks, how long that takes and what it tells."""
    offer = complete.audit_in_hand
    if offer.pairs:
        pairs = counted(offer.pairs, "pair of an audit is", "pairs of an audit are")
        return f"{pairs} unanswered. {_about(offer.seconds)}."
    finds = "how many labels are missing" if complete.audit_finds == "missing" else "how many answers are wrong"
    offer = complete.audit
    return f"An audit of {counted(offer.pairs, 'random pair')} tells {finds}. {_about(offer.seconds)}."


def _about(seconds: float) -> str:
    return f"About {seconds_in_words(seconds)}"


def _everything(image: str, time: str) -> str:
    return f"Mark everything on {image} ({time})"


def _few(number: float) -> str:
    return f"{number:.0f}" if number >= 1.5 else "1" if number >= 0.75 else "0 or 1"


def _seconds(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"

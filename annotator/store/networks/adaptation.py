"""Adaptation (fine-tuning) of a project's backbone: running process, requests and last result.

One process adapts at a time, with its progress in the setting `adapting`. The worker starts it if `adapting_wanted` is
"run" or "estimate", also after a crash. "pause" ends it.
"""

from dataclasses import dataclass
from typing import Any, Literal, cast

from annotator.humanize import format_count
from annotator.store.database.database import Database
from annotator.store.database.process_claims import ProcessClaim
from annotator.store.disk.processes import Claim
from annotator.store.labels import project_counts
from annotator.store.networks import adapted_networks

AUTOMATIC_SETTING, STARTED_AT_SETTING = "adapting_again", "adapting_again_started_at"
ANSWER_GROWTH_FACTOR = 2  # the answers of the last time
STATE_SETTING, REQUEST_SETTING, RESULT_SETTING = "adapting", "adapting_wanted", "adapting_result"
AdaptationRequest = Literal["run", "estimate", "pause", ""]


@dataclass(frozen=True)
class AdaptationState(Claim):
    """The progress that the process adapting a project's backbone reports."""

    # requested place: "local", "ray", "ray://..."
    on: str
    doing: str = "starting"
    # done, of: progress of the step, 0 if unknown
    done: int = 0
    of: int = 0
    # seconds until the end, None if unknown
    seconds_left: float | None = None


_ADAPTATION_CLAIM = ProcessClaim(STATE_SETTING, AdaptationState)
report, release, get_running = _ADAPTATION_CLAIM.report, _ADAPTATION_CLAIM.release, _ADAPTATION_CLAIM.get_running


def claim(db: Database, on: str) -> AdaptationState:
    """Reserve the adaptation for this process. Raises AlreadyRunning if another process has it."""

    def describe_running(other: AdaptationState) -> str:
        return (
            f"The network of {db.paths.project} is being adapted already, by process {other.pid} of {other.host} "
            f"({other.doing}).\n    Wait for it, or end that process: the next one goes on from its last epoch."
        )

    return _ADAPTATION_CLAIM.take(db, describe_running, on=on)


def get_request(db: Database) -> AdaptationRequest:
    """Return the requested action: "run", "estimate", "pause" or ""."""
    value = db.get_setting(REQUEST_SETTING, "")
    return cast(AdaptationRequest, value) if value in ("run", "estimate", "pause") else ""


def set_request(db: Database, request: AdaptationRequest) -> None:
    """Store the requested action, "" when done."""
    db.set_setting(REQUEST_SETTING, request)


def get_result(db: Database) -> dict[str, Any]:
    """Return the last result with its "kind", or {}."""
    value = db.get_setting(RESULT_SETTING, {})
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def set_result(db: Database, facts: dict[str, Any]) -> None:
    db.set_setting(RESULT_SETTING, facts)


@dataclass(frozen=True)
class ReadaptationReason:
    """The growth in answers that justifies adapting the backbone again."""

    # newest adapted backbone
    network: str
    # answers at its creation
    before: int
    # answers now
    answers: int

    @property
    def sentence(self) -> str:
        return (
            f"There are {format_count(self.answers, 'answer')} now, and {self.network} was made from {self.before:,}: "
            "the network can be adapted again."
        )


def count_answers(db: Database) -> int:
    """Count the present and absent answers."""
    counts = project_counts.count_labels_by_state(db)
    return counts["present"] + counts["absent"]


def find_reason_to_readapt(db: Database) -> ReadaptationReason | None:
    networks = adapted_networks.load_networks(db)
    if not networks or get_running(db) or get_request(db) or adapted_networks.get_next_backbone(db):
        return None
    newest, now = networks[-1], count_answers(db)
    before = newest.known_answers or newest.answers
    return ReadaptationReason(newest.name, before, now) if now >= ANSWER_GROWTH_FACTOR * before else None


def is_automatic(db: Database) -> bool:
    return db.get_setting(AUTOMATIC_SETTING, False) is True


def set_automatic(db: Database, wanted: bool) -> None:
    db.set_setting(AUTOMATIC_SETTING, wanted)


def request_if_due(db: Database) -> None:
    """Request an adaptation if readaptation is automatic and there is a reason.

    The answer count is stored, so that a failed adaptation is not repeated at once.
    """
    due = find_reason_to_readapt(db) if is_automatic(db) and get_result(db).get("kind") != "paused" else None
    if due is None:
        return
    started_at = db.get_setting(STARTED_AT_SETTING, 0)
    if isinstance(started_at, int) and due.answers < ANSWER_GROWTH_FACTOR * started_at:
        return
    db.set_setting(STARTED_AT_SETTING, due.answers)
    set_request(db, "run")

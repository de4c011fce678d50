"""Adapting the network of a project: the process that does it and its progress, people's requests, and the result.

Three settings. `adapting` is the state of the process that is at work, with heartbeats; one at a time.
`adapting_wanted` is what people ask for: the worker starts the process for "run" and "estimate", again after a kill,
and the process ends for "pause". `adapting_result` is the result of the last one and stays until the next one begins.

Once the project has twice as many answers as the last time, the advice is to adapt again (`find_reason_to_readapt`).
It is
only shown, and followed by the worker where somebody has asked for that (setting `adapting_again`). An automatic start
is stored with the number of answers at that moment, so that one that fails is not started again at once.
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
    """The state of a process that adapts a project's network.

    Attributes:
        on: The place that was asked for: "local", "ray", "ray://...".
        doing: The present step, in words.
        done, of: The progress of that step; 0 where it is not known.
        seconds_left: Until everything is done; None while that is not known.
    """

    on: str
    doing: str = "starting"
    done: int = 0
    of: int = 0
    seconds_left: float | None = None


_ADAPTATION_CLAIM = ProcessClaim(STATE_SETTING, AdaptationState)
report, release, get_running = _ADAPTATION_CLAIM.report, _ADAPTATION_CLAIM.release, _ADAPTATION_CLAIM.get_running


def claim(db: Database, on: str) -> AdaptationState:
    """Claim the adapting of this project's network. Raises AlreadyRunning when another process has it."""

    def describe_running(other: AdaptationState) -> str:
        return (
            f"The network of {db.paths.project} is being adapted already, by process {other.pid} of {other.host} "
            f"({other.doing}).\n    Wait for it, or end that process: the next one goes on from its last epoch."
        )

    return _ADAPTATION_CLAIM.take(db, describe_running, on=on)


def get_request(db: Database) -> AdaptationRequest:
    """Return what people last asked for: "run", "estimate" or "pause"; "" for nothing."""
    value = db.get_setting(REQUEST_SETTING, "")
    return cast(AdaptationRequest, value) if value in ("run", "estimate", "pause") else ""


def set_request(db: Database, request: AdaptationRequest) -> None:
    """Store what people ask for; "" when it is done."""
    db.set_setting(REQUEST_SETTING, request)


def get_result(db: Database) -> dict[str, Any]:
    """Return the result of the last adapting: "kind" and the facts that belong to it; {} before the first."""
    value = db.get_setting(RESULT_SETTING, {})
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def set_result(db: Database, facts: dict[str, Any]) -> None:
    """Store the result of an adapting, JSON values by name."""
    db.set_setting(RESULT_SETTING, facts)


@dataclass(frozen=True)
class ReadaptationReason:
    """The reason to adapt the network again.

    Attributes:
        network: The newest adapted network.
        before: The project's answers when that network was made.
        answers: The project's answers now.
    """

    network: str
    before: int
    answers: int

    @property
    def sentence(self) -> str:
        """Return the reason as a sentence."""
        return (
            f"There are {format_count(self.answers, 'answer')} now, and {self.network} was made from {self.before:,}: "
            "the network can be adapted again."
        )


def count_answers(db: Database) -> int:
    """Return the number of the project's answers, present and absent."""
    counts = project_counts.count_labels_by_state(db)
    return counts["present"] + counts["absent"]


def find_reason_to_readapt(db: Database) -> ReadaptationReason | None:
    """Return the reason to adapt again; None where there is none.

    None where too few answers were added since, no network was adapted yet, or an adapting is under way.
    """
    networks = adapted_networks.load_networks(db)
    if not networks or get_running(db) or get_request(db) or adapted_networks.get_next_backbone(db):
        return None
    newest, now = networks[-1], count_answers(db)
    before = newest.known_answers or newest.answers
    return ReadaptationReason(newest.name, before, now) if now >= ANSWER_GROWTH_FACTOR * before else None


def is_automatic(db: Database) -> bool:
    """Return whether the worker adapts again without being asked."""
    return db.get_setting(AUTOMATIC_SETTING, False) is True


def set_automatic(db: Database, wanted: bool) -> None:
    """Turn automatic re-adaptation by the worker on or off."""
    db.set_setting(AUTOMATIC_SETTING, wanted)


def request_if_due(db: Database) -> None:
    """Ask for an adapting, where one is due and automatic re-adaptation is on.

    Nothing is asked for after a pause, nor again before the answers have doubled since the last automatic start.
    """
    due = find_reason_to_readapt(db) if is_automatic(db) and get_result(db).get("kind") != "paused" else None
    if due is None:
        return
    started_at = db.get_setting(STARTED_AT_SETTING, 0)
    if isinstance(started_at, int) and due.answers < ANSWER_GROWTH_FACTOR * started_at:
        return
    db.set_setting(STARTED_AT_SETTING, due.answers)
    set_request(db, "run")

"""Prelabeling of a project by a model: running process, progress and requests.

One process prelabels at a time, with its progress in the setting `tagging`. The user's request in `tagging_wanted`
starts or ends it.
"""

from dataclasses import asdict, dataclass
from typing import Any, cast

from annotator.store.database.database import Database
from annotator.store.database.process_claims import ProcessClaim
from annotator.store.disk.processes import Claim

STATE_SETTING, REQUEST_SETTING, STOP_SETTING, RESULT_SETTING = (
    "tagging",
    "tagging_wanted",
    "tagging_stop",
    "tagging_result",
)


@dataclass(frozen=True)
class TaggingState(Claim):
    """The progress that the prelabeling process reports."""

    url: str
    model: str
    # prediction source that it writes
    name: str
    # done, of: images, 0 if unknown
    done: int = 0
    of: int = 0
    # images per minute
    per_minute: float = 0.0
    # None if unknown
    seconds_left: float | None = None
    # unanswered questions to the model
    without: int = 0
    # why the last question was unanswered, or ""
    error: str = ""


@dataclass(frozen=True)
class TaggingRequest:
    """A prelabeling request from the Settings page (`may_leave`: whether images may leave this machine)."""

    url: str
    model: str
    may_leave: bool
    by: str


_TAGGING_CLAIM = ProcessClaim(STATE_SETTING, TaggingState)
report, release, get_running = _TAGGING_CLAIM.report, _TAGGING_CLAIM.release, _TAGGING_CLAIM.get_running


def claim(db: Database, url: str, model: str, name: str) -> TaggingState:
    """Reserve the prelabeling for this process. Raises AlreadyRunning if another process has it."""

    def describe_running(other: TaggingState) -> str:
        return (
            f"Another tagger is at work on {db.paths.project}: process {other.pid} of {other.host} asks "
            f"{other.model}.\n"
            "    Wait for it, or stop it on the Settings page; what it has said stays."
        )

    with db.writing():
        mine = _TAGGING_CLAIM.take(db, describe_running, url=url, model=model, name=name)
        db.set_setting(STOP_SETTING, None)
    return mine


def get_request(db: Database) -> TaggingRequest | None:
    value = db.get_setting(REQUEST_SETTING)
    try:
        return TaggingRequest(**cast(dict[str, Any], value)) if isinstance(value, dict) else None
    except TypeError:  # of another version
        return None


def set_request(db: Database, request: TaggingRequest | None) -> None:
    """Store a request. None stops the process soon."""
    db.set_setting(REQUEST_SETTING, request and asdict(request))
    if request is None and (state := get_running(db)) is not None:
        db.set_setting(STOP_SETTING, state.process)
    elif request is not None:
        db.set_setting(RESULT_SETTING, None)


def should_stop(db: Database, mine: TaggingState) -> bool:
    """Return whether the prelabeling process with this state was told to end."""
    return db.get_setting(STOP_SETTING) == mine.process


def get_result(db: Database) -> dict[str, Any]:
    """Return the last result {"name", "images", "without", "error", "at"}, or {}."""
    value = db.get_setting(RESULT_SETTING)
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def set_result(db: Database, facts: dict[str, Any]) -> None:
    """Store a JSON result and clear the request."""
    db.set_setting(RESULT_SETTING, facts)
    db.set_setting(REQUEST_SETTING, None)

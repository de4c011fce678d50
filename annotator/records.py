"""The words of the project as frozen records: what the rooms hand each other instead of dicts and rows."""

from collections.abc import Sequence
from dataclasses import dataclass

PRESENT, ABSENT, UNSURE = 1, -1, 0
STATE_NAMES = {PRESENT: "present", ABSENT: "absent", UNSURE: "unsure"}
STATES = {name: state for state, name in STATE_NAMES.items()}

ACTIONS = ("label", "done", "skip", "undo")
"""What a decision does: answer one cell, complete the image, pass it over, take an earlier decision back."""

SOURCES = ("click", "suggestion", "grid", "audit", "done", "import")
"""Where a decision came from. A model is never a source of decisions, only of exported fillings."""


@dataclass(frozen=True)
class Image:
    """One image = one content (sha256), whatever files hold it; `name` is what people and exports call it."""

    id: int
    name: str
    sha256: str
    width: int
    height: int


@dataclass(frozen=True)
class BadFile:
    """A file that was kept out, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Class:
    id: int
    name: str
    description: str = ""


@dataclass(frozen=True)
class Decision:
    """What a person said, as it is handed to the store.

    uuid        made where the person acted; the same one again changes nothing
    action      one of ACTIONS
    image_id    None only for an undo
    class_id    None for done, skip and undo
    state       1 present, -1 absent, 0 unsure; None for done, skip and undo
    undoes      uuid of the decision taken back; None with action "undo" means this annotator's newest
    batch       decisions sharing one are undone as one
    run_id, score    the suggestion the person was shown
    milliseconds     from the image being on screen to the decision
    """

    uuid: str
    action: str
    annotator: str
    source: str
    image_id: int | None = None
    class_id: int | None = None
    state: int | None = None
    undoes: str | None = None
    batch: str | None = None
    run_id: int | None = None
    score: float | None = None
    milliseconds: int | None = None


@dataclass(frozen=True)
class Label:
    """The newest state of one image-class cell and the decision it came from."""

    image_id: int
    class_id: int
    state: int
    source: str
    annotator: str
    decided_at: float


@dataclass(frozen=True)
class Saved:
    """What became of a batch of decisions: every uuid is in exactly one of the two."""

    saved: list[str]
    refused: dict[str, str]


@dataclass(frozen=True)
class Suggestion:
    """A label the current run thinks is missing."""

    image_id: int
    class_id: int
    probability: float
    run_id: int


@dataclass(frozen=True)
class Wanted:
    """What a page asks for.

    mode         annotate or review
    holder       the open page, for leases
    instead      the holder that this page was before a reload: what that one held is this one's now
    have         images it has in hand: their leases are renewed, all others of this page are let go of
    passed       images it has done with: they are not given again
    want         how many more it can take
    threshold    review: suggestions from this probability on; None takes the run's own
    """

    mode: str
    holder: str
    annotator: str
    have: Sequence[int]
    want: int
    threshold: float | None = None
    passed: Sequence[int] = ()
    instead: str = ""


@dataclass(frozen=True)
class Run:
    """One finished training: what it was, and the newest decision it had seen."""

    id: int
    method: str
    parameters: dict
    backbone: str
    class_ids: list[int]
    images: int
    last_decision_id: int
    epochs: int
    seconds: float
    loss: list[float]
    threshold: float
    finished_at: float


@dataclass(frozen=True)
class Job:
    """Work asked of the worker: kind is 'train' or 'heatmap'."""

    id: int
    kind: str
    run_id: int | None = None
    image_id: int | None = None
    class_id: int | None = None


@dataclass(frozen=True)
class WorkerState:
    """The worker as it last described itself. `alive` = its heartbeat is recent and its process has not ended."""

    state: str
    alive: bool
    pid: int | None = None
    heartbeat_at: float | None = None
    done: int = 0
    of: int = 0
    last_error: str = ""
    last_error_at: float | None = None

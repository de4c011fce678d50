"""Frozen dataclasses that the packages exchange, and the sources of decisions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from annotator.roles import Right

PRESENT, ABSENT, UNSURE = 1, -1, 0
STATE_NAMES = {PRESENT: "present", ABSENT: "absent", UNSURE: "unsure"}
STATES = {name: state for state, name in STATE_NAMES.items()}

ACTIONS = ("label", "done", "skip", "undo", "flag", "clear", "comment")
"""What a decision does: answer a cell, complete, skip, undo a decision, flag, empty a cell, or comment on an image."""
CELL_ACTIONS = ("label", "clear")


@dataclass(frozen=True)
class DecisionSource:
    """One way in which a decision is made, such as a click or an audit, and its properties.

    Attributes:
        name: Stored name.
        about: Description.
        chosen_by: Who chose the cell: person, model, chance, answers or file.
        scored: The model's probability is logged.
        unbiased: The cell's choice is independent of its answer. Includes relabels, or disputed cells would be
            missing.
        timed: Timed task: grid, image, click or "" for none.
        claimable: Pages may send it.
        blind: Others' answers are hidden.
        is_vote: Never changes others' labels.
        right: Required right.
    """

    name: str
    about: str
    chosen_by: str
    scored: bool = False
    unbiased: bool = True
    timed: str = ""
    claimable: bool = True
    blind: bool = False
    is_vote: bool = False
    right: Right = Right.ANSWER


SOURCES = {
    source.name: source
    for source in (
        DecisionSource("click", "a person named the class", "person", unbiased=False, timed="click"),
        DecisionSource("suggestion", "a likely label, with its probability", "model", scored=True, timed="image"),
        DecisionSource("grid", "many images of one class, mostly likely ones", "model", scored=True, timed="grid"),
        DecisionSource(
            "audit",
            "sampled at random for the certificate; predictions and earlier answers are hidden",
            "chance",
            scored=True,
            timed="grid",
            blind=True,
        ),
        DecisionSource(
            "reading",
            "one of several people who answer every class of an image, blind to each other",
            "chance",
            timed="image",
            blind=True,
            is_vote=True,
        ),
        DecisionSource(
            "known",
            "an image whose answers are known, mixed in to see how well a person answers",
            "chance",
            timed="image",
            blind=True,
            is_vote=True,
        ),
        DecisionSource("done", "no other class is present", "person"),
        DecisionSource("gallery", "a person changed several images at once", "person", unbiased=False),
        DecisionSource("event", "an answer to one image of an event, given to others of it", "person", unbiased=False),
        DecisionSource("aside", "a person set the image aside", "person", unbiased=False, claimable=False),
        DecisionSource("script", "a person's own program chose the cell", "person", unbiased=False, claimable=False),
        DecisionSource(
            "merge", "a class with this answer was merged into this one", "person", unbiased=False, claimable=False
        ),
        DecisionSource("import", "read from a file of labels", "file", unbiased=False, claimable=False),
        DecisionSource("random", "all unanswered classes of a random image", "chance", scored=True, timed="image"),
        DecisionSource("search", "unusual images, asked for a class without a model", "model", timed="grid"),
        DecisionSource("sample", "random images, asked for one class", "chance", timed="grid"),
        DecisionSource(
            "exploration", "all unanswered classes of an unlabeled image", "chance", scored=True, timed="image"
        ),
        DecisionSource("relabel", "an answer that the model contradicts, asked again", "answers", timed="grid"),
        DecisionSource("settlement", "people disagreed, and this answer settles it", "answers", right=Right.REVIEW),
    )
}
"""Sources of decisions, by name. A model is never one: it only fills in cells of an export."""

FILLED_BY_AUTO_ACCEPT, FILLED_BY_RULE_OUT, FILLED_BY_MODEL, FILLED_BY_ASSUMPTION = (
    "model (accepted)",
    "ruled out (sample)",
    "model",
    "assumed",
)
FILLED_BY_MAJORITY, FILLED_BY_ESTIMATE, FILLED_BY_EVENT, FILLED_BY_IMPLICATION = (
    "majority of people",
    "estimated from people",
    "label of the event",
    "implied",
)
FILL_SOURCES = (
    FILLED_BY_AUTO_ACCEPT,
    FILLED_BY_RULE_OUT,
    FILLED_BY_MODEL,
    FILLED_BY_ASSUMPTION,
    FILLED_BY_MAJORITY,
    FILLED_BY_ESTIMATE,
    FILLED_BY_EVENT,
    FILLED_BY_IMPLICATION,
)
"""What an export names as the source of cells that nobody has answered, or nobody alone; read back, no answers."""


def list_sources(**properties: object) -> tuple[str, ...]:
    """Return the names of sources, in order.

    Args:
        **properties: Attribute values, such as scored=True.

    Returns:
        The names.
    """
    return tuple(
        name
        for name, source in SOURCES.items()
        if all(getattr(source, key) == value for key, value in properties.items())
    )


@dataclass(frozen=True)
class Image:
    """One image, identified by its content, in any number of files.

    Attributes:
        id: Database id.
        name: Displayed name.
        sha256: Hexadecimal content hash.
        width: Pixels.
        height: Pixels.
    """

    id: int
    name: str
    sha256: str
    width: int
    height: int


@dataclass(frozen=True)
class BadFile:
    """A file that was not registered.

    Attributes:
        path: Its path.
        reason: Message.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Class:
    """A class of the project.

    Attributes:
        id: Database id.
        name: Displayed name.
        description: Definition or "".
        key: Keyboard key or "".
        position: Place under its heading.
        heading: Group or "".
        colour: "#rrggbb" or "".
        synonyms: Other searchable names.
        examples: Example image ids.
    """

    id: int
    name: str
    description: str = ""
    key: str = ""
    position: int = 0
    heading: str = ""
    colour: str = ""
    synonyms: tuple[str, ...] = ()
    examples: tuple[int, ...] = ()


@dataclass(frozen=True)
class Decision:
    """One stored action of an annotator, such as a label, flag or undo.

    Attributes:
        uuid: Storing it again changes nothing.
        action: One of ACTIONS.
        annotator: Author.
        source: `DecisionSource` name.
        image_id: None only for undo.
        class_id: For labels and clears.
        state: 1 present, -1 absent, 0 unsure, or None.
        undoes: Uuid of the decision to undo. None with "undo" selects the newest.
        batch: Shared by decisions undone together.
        run_id: Run of the displayed suggestion, or None.
        score: Displayed probability, or None.
        milliseconds: Answer time, or None.
        note: Flag or comment. "" removes flags.
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
    note: str = ""


@dataclass(frozen=True)
class Batch:
    """Cells (one image and one class each) answered in one step, stored and undone all or nothing.

    Attributes:
        uuid: Its decisions are "<uuid>:0", "<uuid>:1", ...
        annotator: Author.
        source: `DecisionSource` name.
        cells: (image id, class id, state or None to clear, displayed probability or None).
        run_id: Run of the displayed probabilities, or None.
        milliseconds: Total answer time, or None.
    """

    uuid: str
    annotator: str
    source: str
    cells: Sequence[tuple[int, int, int | None, float | None]]
    run_id: int | None = None
    milliseconds: int | None = None


class Label(NamedTuple):
    """The current label of one image and class, a NamedTuple for speed.

    Attributes:
        image_id: Image.
        class_id: Class.
        state: 1 present, -1 absent, 0 unsure.
        source: `DecisionSource` name.
        annotator: Author.
        decided_at: Unix seconds.
    """

    image_id: int
    class_id: int
    state: int
    source: str
    annotator: str
    decided_at: float


@dataclass(frozen=True)
class SaveResult:
    """The result of storing decisions, each saved or refused.

    Attributes:
        saved: Uuids of stored decisions.
        refused: Reason by uuid.
        opinions: Uuids of saved decisions that do not resolve a disagreement of annotators.
    """

    saved: list[str]
    refused: dict[str, str]
    opinions: list[str] = field(default_factory=list[str])


class AnnotatorAnswer(NamedTuple):
    """One annotator's answer for one image and class.

    Attributes:
        person: Annotator.
        state: 1 present, -1 absent, 0 unsure.
        at: Unix seconds.
        milliseconds: Time for this answer, or None.
    """

    person: str
    state: int
    at: float
    milliseconds: float | None


@dataclass(frozen=True)
class Suggestion:
    """A label that the current model finds missing or, if `known`, wrong.

    Attributes:
        image_id: Image.
        class_id: Class.
        probability: None only for some disagreements.
        run_id: Training run, or None.
        known: State that annotators gave, or None.
        said: Answers of disagreeing annotators, newest last.
        models: (name, score) per external model.
        boxes: (name, score, left, top, width, height), image fractions.
    """

    image_id: int
    class_id: int
    probability: float | None
    run_id: int | None
    known: int | None = None
    said: tuple[AnnotatorAnswer, ...] = ()
    models: tuple[tuple[str, float], ...] = ()
    boxes: tuple[tuple[str, float, float, float, float, float], ...] = ()


@dataclass(frozen=True)
class SuggestionFilter:
    """A filter of the suggestions that the Review page shows.

    Attributes:
        class_id: None selects all.
        low: Lowest probability. None selects the run's threshold, or no limit for answered cells.
        high: Highest probability.
        kind: "missing", "likely_mistakes" or "annotator_disagreements".
        by: Annotator of images (or answered cells). "" selects all.
    """

    class_id: int | None = None
    low: float | None = None
    high: float = 1.0
    kind: str = "missing"
    by: str = ""


@dataclass(frozen=True)
class WantedImages:
    """A page's request to lease images.

    Attributes:
        mode: annotate or review.
        holder: Leasing page's id.
        annotator: Person.
        have: Images held by the page. Its other leases are released.
        want: Further images.
        only: Review filter.
        passed: Finished images.
        instead: Page id before a reload, or "".
        order: Query order. "" selects the project's.
        after: Last image left. 0 restarts, None continues.
        may_review: False omits images that the annotator must still answer blind, and disputed labels.
    """

    mode: str
    holder: str
    annotator: str
    have: Sequence[int]
    want: int
    only: SuggestionFilter = SuggestionFilter()
    passed: Sequence[int] = ()
    instead: str = ""
    order: str = ""
    after: int | None = None
    may_review: bool = True


@dataclass(frozen=True)
class WantedGrids:
    """A page's request to lease grids of images for one class.

    Attributes:
        holder: Leasing page's id.
        annotator: Person.
        class_id: None selects the class of the last held cell, else the best.
        size: Tiles per grid.
        have: Cells (image id, class id) held by the page.
        want: Further grids.
        passed: Finished cells.
        instead: Page id before a reload, or "".
        selection: Image selection. "" selects all images.
        but: Excluded class (asked last in audits), or None.
        hide_predictions: For audits. Include answered cells, hide predictions and answers.
    """

    holder: str
    annotator: str
    class_id: int | None
    size: int
    have: Sequence[tuple[int, int]]
    want: int
    passed: Sequence[tuple[int, int]] = ()
    instead: str = ""
    selection: str = ""
    but: int | None = None
    hide_predictions: bool = False


@dataclass(frozen=True)
class WantedActions:
    """The Autopilot page's request to lease actions (grids or images).

    Attributes:
        holder: Leasing page's id.
        annotator: Person.
        have: Cells (image id, class id) held by the page, class 0 for images.
        want: Further actions.
        passed: Finished cells.
        instead: Page id before a reload, or "".
        tiles: Largest grid, or None.
        extras: Kinds of questions about answered labels, at the end.
    """

    holder: str
    annotator: str
    have: Sequence[tuple[int, int]]
    want: int
    passed: Sequence[tuple[int, int]] = ()
    instead: str = ""
    tiles: int | None = None
    extras: Collection[str] = ()


@dataclass(frozen=True)
class Run:
    """One finished training and its probabilities' version.

    Attributes:
        id: Database id.
        method: Training method.
        parameters: By name.
        backbone: Backbone name.
        class_ids: In column order.
        images: Image count.
        last_decision_id: Newest decision in this version.
        epochs: Number of epochs.
        seconds: Training time.
        loss: Mean per epoch.
        threshold: Lowest suggested probability.
        finished_at: Unix seconds.
        trained_decision_id: Newest decision in training.
        version: 0, increased by updates.
        calibration: Maps logits to probabilities.
    """

    id: int
    method: str
    parameters: dict[str, Any]
    backbone: str
    class_ids: list[int]
    images: int
    last_decision_id: int
    epochs: int
    seconds: float
    loss: list[float]
    threshold: float
    finished_at: float
    trained_decision_id: int = 0
    version: int = 0
    calibration: dict[str, Any] | None = None

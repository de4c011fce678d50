"""The records that the packages exchange, as frozen dataclasses, and the sources of decisions."""

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
    """The source of a decision, and the properties that follow from it.

    Attributes:
        name: The word that is stored with the decision.
        about: Who or what chose the cell, in words for people.
        chosen_by: Person: named unasked; model: its ranking; chance: at random; answers: asked again; file: imported.
        scored: The model's probability is logged with the answer, as a test of the model.
        unbiased: The choice of the cell does not depend on its answer, so a training may use it as a sample. Relabels
            are included: without them the cells on which model and people differ would be missing.
        timed: The kind of work that its time measures: grid, image (several classes at once), click; "" for none.
        claimable: An open page may send it.
        blind: The person who answers does not see what others have said.
        is_vote: It never changes a label that another person gave.
        right: The right that a member needs to give it.
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
        DecisionSource(
            "search", "unusual images, asked for a class of which there is no example", "model", timed="grid"
        ),
        DecisionSource(
            "sample", "random images, asked for a class of which there is no example", "chance", timed="grid"
        ),
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
    """Return the names of the sources with some properties.

    Args:
        **properties: Attributes of Source with the values they must have: list_sources(scored=True).

    Returns:
        The names, in the order of SOURCES.
    """
    return tuple(
        name
        for name, source in SOURCES.items()
        if all(getattr(source, key) == value for key, value in properties.items())
    )


@dataclass(frozen=True)
class Image:
    """One image: one content, in however many files.

    Attributes:
        id: Its id in the database.
        name: Its name for people and in exports.
        sha256: The hash of its content, in hexadecimal digits.
        width: In pixels.
        height: In pixels.
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
        reason: Why it was not registered, for people.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Class:
    """A class of the project: its column, its name, and how it is shown.

    Attributes:
        id: Its id in the database.
        name: Its name for people and in exports.
        description: What belongs to it, in a sentence or more; "" for none.
        key: The letter or digit that labels with it, "" for none.
        position: Where it stands in lists, under its heading.
        heading: The heading of its group, "" for none.
        colour: "#rrggbb", "" for none.
        synonyms: Other names by which people find it.
        examples: Ids of the images that people chose to show what it means.
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
    """A decision of a person, as the store takes it.

    Attributes:
        uuid: Made where the person acted; storing the same one again changes nothing.
        action: One of ACTIONS.
        annotator: The person who decided.
        source: The name of its Source.
        image_id: None only for an undo.
        class_id: None but for labels and cleared cells.
        state: 1 present, -1 absent, 0 unsure; None but for labels.
        undoes: Uuid of the decision taken back; None with action "undo": this annotator's newest.
        batch: Decisions with the same batch are undone as one; None: this one alone.
        run_id: The run of the suggestion that the person was shown; None: none was shown.
        score: The probability of that suggestion; None: none was shown.
        milliseconds: From the image being on screen to the decision; None: not measured.
        note: Text of a flag or a comment; "" removes the image's flag.
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
    """Many cells answered with one key, such as a grid: stored whole or not at all, undone as one.

    Attributes:
        uuid: Made where the person acted; its decisions are stored as "<uuid>:0", "<uuid>:1", ...
        annotator: The person who decided.
        source: The name of the Source of all of them.
        cells: (image id, class id, state or None to clear the cell, the probability that was shown or None).
        run_id: The run of these probabilities; None: none was shown.
        milliseconds: For all cells together; None: not measured.
    """

    uuid: str
    annotator: str
    source: str
    cells: Sequence[tuple[int, int, int | None, float | None]]
    run_id: int | None = None
    milliseconds: int | None = None


class Label(NamedTuple):
    """The newest state of one image-class cell and its decision; a NamedTuple, which is made faster than a dataclass.

    Attributes:
        image_id: The image of the cell.
        class_id: The class of the cell.
        state: 1 present, -1 absent, 0 unsure.
        source: The name of the Source of the decision.
        annotator: The person who decided.
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
    """The result of storing decisions: every uuid is either saved or refused.

    Attributes:
        saved: Uuids of the decisions that are in the project now.
        refused: Uuid -> reason, for people.
        opinions: Those saved now that are one more opinion on a cell on which people still differ.
    """

    saved: list[str]
    refused: dict[str, str]
    opinions: list[str] = field(default_factory=list[str])


class AnnotatorAnswer(NamedTuple):
    """The answer of one person to a cell.

    Attributes:
        person: The person who answered.
        state: 1 present, -1 absent, 0 unsure.
        at: Unix seconds.
        milliseconds: From seeing to answering; None where that was not measured for this cell alone.
    """

    person: str
    state: int
    at: float
    milliseconds: float | None


@dataclass(frozen=True)
class Suggestion:
    """A label that the current run thinks is missing, or, where `known` is a person's answer, thinks is wrong.

    Attributes:
        image_id: The image of the cell.
        class_id: The class of the cell.
        probability: None only for an annotator disagreement on a cell that the model has no probability for.
        run_id: The run of the probability; None where there is none.
        known: The state that a person gave; None: nobody has answered.
        said: The answers of an annotator disagreement, the newest last.
        models: (name, score) of each model from elsewhere that has a score for the cell.
        boxes: (name, score, left, top, width, height) of where they saw it, as fractions of the image.
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
    """The suggestions that Review shows.

    Attributes:
        class_id: Only of this class; None: of all.
        low: The lowest probability; None: the run's own threshold, or, of answered cells, none.
        high: The highest probability.
        kind: "missing": cells nobody has answered; "likely_mistakes": decisions that the model doubts;
            "annotator_disagreements": decisions of different people that contradict each other.
        by: Only on images (of answered cells: only cells) that this person decided on; "": all.
    """

    class_id: int | None = None
    low: float | None = None
    high: float = 1.0
    kind: str = "missing"
    by: str = ""


@dataclass(frozen=True)
class WantedImages:
    """A page's request for images.

    Attributes:
        mode: Annotate or review.
        holder: The open page, for leases.
        annotator: The person at the page.
        have: Images it has in hand: their leases are renewed, all others of this page are released.
        want: How many more it can take.
        only: Review: the suggestions to show.
        passed: Images it has done with: they are not given again.
        instead: The holder that this page was before a reload, whose leases this one takes over; "": none.
        order: Annotate: the query order; "" for the project's own.
        after: Of an order by name or time: the last image that this person has left; 0: begin anew, None: as before.
        may_review: False: without images that this person is to answer blind, and likely mistakes that others settle.
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
    """A page's request for grids.

    Attributes:
        holder: The open page, for leases.
        annotator: The person at the page.
        class_id: The class of the grids; None: the class of the grids in hand, or else the best of all.
        size: Tiles of a grid.
        have: Cells (image id, class id) it has in hand, as in Wanted.
        want: How many more grids it can take.
        passed: Cells (image id, class id) it has done with, as in Wanted.
        instead: As in Wanted.
        selection: Only images of this selection; "" for all images.
        but: With class_id None: any class but this one; None: any class.
        hide_predictions: Include answered cells; hide predictions and previous answers: for audits and relabels.
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
    """Autopilot's request for actions.

    Attributes:
        holder: The open page, for leases.
        annotator: The person at the page.
        have: Cells (image id, class id) it has in hand, as in WantedGrids; class 0 for a whole image.
        want: How many more actions it can take.
        passed: Cells it has done with, as `have`.
        instead: As in Wanted.
        tiles: The largest number of tiles of a grid: as many as this person's grid shows at once; None: any number.
        extras: What is asked about answered pairs once no pair is open: finishing.EXTRAS, which are offers until then.
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
    """One finished training, and the version of its probabilities.

    Attributes:
        id: Its id in the database.
        method: Name of the training method.
        parameters: The parameters of the method, by name.
        backbone: Name of the backbone.
        class_ids: Ids of the classes it was trained on, in the order of the columns of its arrays.
        images: The number of images it has probabilities for.
        last_decision_id: The newest decision that the current version includes.
        epochs: The number of epochs.
        seconds: How long the training took.
        loss: The mean loss of each epoch.
        threshold: The probability from which on a missing label is suggested.
        finished_at: Unix seconds.
        trained_decision_id: The newest decision that the training included.
        version: 0 after training, increased by every update.
        calibration: Parameters that map the model's logits to these probabilities; None: uncalibrated.
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

"""The requests of the pages: one shape each, with the type and the bounds of every value in it.

A body, a path or a query that does not fit its shape is refused before it is used. Types are strict: `true` is no
number, and 0.6 no state. Decisions are parsed one by one, so that an invalid one does not block the others.
"""

import json
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from annotator.records import SOURCES, sources

MOST_NAMED = 5000  # images or cells that a page names as in hand or passed; more are not read
MOST_DECISIONS = 500  # of one request
MOST_CELLS = 10_000  # of one batch, as in components/gallery/answer_panel.js: a second of the store's time
NO_TIME = msgspec.Raw(b"null")

Id = Annotated[int, Meta(ge=1, le=2**53)]
IdOrNone = Annotated[int, Meta(ge=0, le=2**53)]  # 0: a whole image, or no class
Count = Annotated[int, Meta(ge=0, le=2**53)]
Probability = Annotated[float, Meta(ge=0, le=1)]
Coordinate = Annotated[float, Meta(ge=-1e6, le=1e6)]
State = Literal[1, -1, 0]
Text = Annotated[str, Meta(max_length=100)]
Uuid = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.-]{8,100}\Z")]
Path = Annotated[str, Meta(max_length=4096)]
Classes = Annotated[list[Id], Meta(max_length=1000)]
Facts = Annotated[list[tuple[Path, Path]], Meta(max_length=100)]
Images = Annotated[list[Id], Meta(max_length=100_000)]
Cells = Annotated[list[tuple[Id, IdOrNone]], Meta(max_length=100_000)]
if TYPE_CHECKING:
    ClaimableSource = str
    AnySource = str
    FlagSource = str
else:
    ClaimableSource, AnySource = Literal[sources(claimable=True)], Literal[tuple(SOURCES)]
    FlagSource = Literal[(*sources(claimable=True), "aside")]


class BadRequest(ValueError):
    """The request does not fit its shape; the message says where."""


class Nothing(Struct):
    """A request without content."""


class FilterRequest(Struct):
    """The fields of records.Filter."""

    class_id: Id | None = field(default=None, name="class")
    low: Probability | None = field(default=None, name="from")
    high: Probability | None = field(default=None, name="to")
    kind: Literal["missing", "likely_mistakes", "annotator_disagreements"] = "missing"
    by: Text = ""


class _Page(Struct, kw_only=True):
    holder: Text
    instead: Text = ""
    want: Count = 0


class WorkRequest(_Page, kw_only=True):
    """The fields of records.Wanted."""

    mode: Literal["annotate", "review"]
    have: Images = []
    passed: Images = []
    only: FilterRequest = field(default_factory=FilterRequest, name="filter")
    order: Text = ""
    after: IdOrNone | None = None


class GridRequest(_Page, kw_only=True):
    """The fields of records.WantedGrids."""

    size: Count
    class_id: Id | None = field(default=None, name="class")
    but: Id | None = None
    have: Cells = []
    passed: Cells = []
    selection: Text | None = None
    audit: bool | None = None


class ActionsRequest(_Page, kw_only=True):
    """The fields of records.WantedActions; extra: one of its extras, or "none" to be given no action."""

    have: Cells = []
    passed: Cells = []
    tiles: Id | None = None
    extra: Literal["", "relabel", "audit", "none"] = ""


class TimedTaskRequest(Struct):
    """The time that a task of the speed test took: store/people/speed_tests.py."""

    round: Annotated[int, Meta(ge=1, le=10_000)]
    task: Annotated[int, Meta(ge=0, le=1000)]
    kind: Literal["grid", "image", "click"]
    cells: Annotated[int, Meta(ge=1, le=1000)]
    changes: Annotated[int, Meta(ge=0, le=3000)]
    milliseconds: Annotated[float, Meta(ge=1, le=600_000)]


class ItemsRequest(Struct):
    """Images to show again."""

    images: Images


class NeighboursRequest(Struct):
    """An image whose neighbours in its folder are wanted, by file name or by capture time."""

    image: Id
    by: Literal["name", "time"] = "name"


class AddClassRequest(Struct):
    """A class to add; sure: the person has seen what may be a surprise."""

    name: Annotated[str, Meta(max_length=1000)]
    sure: bool = False


class AnsweringRequest(Struct):
    """The person's way to answer: store/labels/answering.py."""

    mode: Literal["one", "all"]


class UndoRuleOutRequest(Struct):
    """The batch of a class that was ruled out, to be given back."""

    batch: Uuid


class HistoryRequest(Struct):
    """An image whose history is wanted."""

    image: Id


class RelatedRequest(Struct):
    """An image whose twins, or whose event, are wanted."""

    image: Id


class ClassRequest(Struct):
    """A class to show examples of, or to rule out."""

    class_id: Id = field(name="class")


class FindRequest(Struct):
    """A part of a name, by which images are wanted."""

    text: Path
    count: Count


class SelectRequest(Struct):
    """A polygon on the map."""

    polygon: Annotated[list[tuple[Coordinate, Coordinate]], Meta(min_length=3, max_length=20_000)]


class ColorsRequest(Struct):
    """The property of images that the points of the map are coloured by; fact: its name, or that of a column."""

    by: Literal["stage", "class", "probability", "fact"]
    class_id: IdOrNone = field(default=0, name="class")
    fact: Path = ""


class UploadQuery(Struct):
    """The name of a file that is sent to be imported."""

    name: Annotated[str, Meta(min_length=1, max_length=1000)]


class ScoredImage(Struct):
    """The scores of another model for an image, given by its name or by the sha256 of its file."""

    scores: Annotated[dict[Path, float], Meta(max_length=10_000)]
    image: Path = ""
    sha256: Annotated[str, Meta(pattern=r"\A([0-9A-Fa-f]{64})?\Z")] = ""

    def __post_init__(self) -> None:
        if bool(self.image) == bool(self.sha256):
            raise ValueError("an image has either `image` or `sha256`")


class PredictionsRequest(Struct):
    """Scores of another model; scale: as in prediction_sources.Source."""

    name: Text
    images: Annotated[list[ScoredImage], Meta(min_length=1, max_length=MOST_NAMED)]
    scale: Literal["probability", "score"] = "probability"
    only_known: bool = False


class ImagePath(Struct):
    """An image in an address."""

    image_id: Id


class PictureQuery(Struct):
    """The options of an image in an address; full: at its own size, not reduced."""

    full: Text = ""


class HeatmapPath(Struct):
    """A heat map in an address."""

    run_id: Id
    image_id: Id
    class_id: Id


class _Given(Struct, kw_only=True, tag_field="action"):
    """The fields that every decision of a page has.

    Attributes:
        annotator, signature: The name it was given under, and that person's pass; "" and none: the page's own.
        milliseconds: Any value: a decision is never refused for its time.
    """

    uuid: Uuid
    source: ClaimableSource = "click"
    annotator: Text = ""
    signature: Annotated[str, Meta(max_length=1000)] | None = field(default=None, name="pass")
    milliseconds: msgspec.Raw = NO_TIME
    batch: Uuid | None = None

    @property
    def action(self) -> str:
        """Return one of records.ACTIONS, or batch."""
        return str(type(self).__struct_config__.tag)


class LabelGiven(_Given, kw_only=True, tag="label"):
    """The answer to one cell."""

    image: Id
    class_id: Id = field(name="class")
    state: State
    run: Id | None = None
    score: Probability | None = None


class BatchGiven(_Given, kw_only=True, tag="batch"):
    """The answers to many cells: image, class, state (null clears the cell), probability.

    Attributes:
        copies: Answers that other images of an event get, as in EventBatch (store/events/answers.py).
    """

    cells: Annotated[list[tuple[Id, Id, State | None, Probability | None]], Meta(max_length=MOST_CELLS)]
    run: Id | None = None
    copies: Annotated[list[tuple[Id, Id, State, Id]], Meta(max_length=MOST_CELLS)] = []


class DoneGiven(_Given, kw_only=True, tag="done"):
    """A statement that no other class is on this image."""

    image: Id


class SkipGiven(_Given, kw_only=True, tag="skip"):
    """A request to leave this image for later."""

    image: Id


class FlagGiven(_Given, kw_only=True, tag="flag"):
    """A note on an image, which may set it aside; the store says how long it may be."""

    source: FlagSource = "click"
    image: Id
    note: Annotated[str, Meta(max_length=100_000)] | None = ""


class ClearGiven(_Given, kw_only=True, tag="clear"):
    """The removal of one cell's answer."""

    image: Id
    class_id: Id = field(name="class")


class CommentGiven(_Given, kw_only=True, tag="comment"):
    """A comment on an image; the store says how long it may be."""

    image: Id
    note: Annotated[str, Meta(max_length=100_000)]


class UndoGiven(_Given, kw_only=True, tag="undo"):
    """The withdrawal of an earlier decision; of a batch "<uuid>:0"."""

    source: AnySource = "click"
    undoes: Annotated[str, Meta(max_length=120)] | None = None


AnyDecisionRequest = LabelGiven | BatchGiven | DoneGiven | SkipGiven | FlagGiven | ClearGiven | CommentGiven | UndoGiven


class DecisionsRequest(Struct):
    """Decisions, each still as raw JSON."""

    decisions: Annotated[list[msgspec.Raw], Meta(max_length=MOST_DECISIONS)]


class _Named(Struct):
    uuid: str


Shape = TypeVar("Shape")


def parsed(data: bytes, shape: type[Shape]) -> Shape:
    """Return the body of a request in this shape. Raises BadRequest for what is not JSON of this shape."""
    return _parsed(data, shape)


def _parsed(data: bytes | msgspec.Raw, shape: Any) -> Any:
    try:
        return _decoder(shape).decode(data)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    except RecursionError as error:
        raise BadRequest("it is nested too deeply") from error


def converted(values: dict[str, Any], shape: type[Shape]) -> Shape:
    """Return the values of a path or a query, which are texts, in this shape. Raises BadRequest."""
    try:
        return msgspec.convert(values, shape, strict=False)
    except ValueError as error:
        raise BadRequest(str(error)) from error


def parsed_decisions(data: bytes) -> tuple[list[AnyDecisionRequest], dict[str, str]]:
    """Return the valid decisions of a request, and by uuid why the others are refused.

    A decision without a uuid is named by its place, "#1" the first. Raises BadRequest for no list of decisions.
    """
    given, refused = [], {}
    for place, entry in enumerate(_entries(data), start=1):
        try:
            given.append(_parsed(entry, AnyDecisionRequest))
        except BadRequest as problem:
            refused[_name_of(entry) or f"#{place}"] = f"not a decision: {problem}"
    return given, refused


def milliseconds_of(given: AnyDecisionRequest) -> float | None:
    """Return the time that a decision took, None when it is missing or no number."""
    if given.milliseconds is NO_TIME:
        return None
    with suppress(ValueError, RecursionError):
        return _decoder(float | None).decode(given.milliseconds)
    return None


def _entries(data: bytes) -> list[msgspec.Raw] | list[bytes]:
    try:
        return parsed(data, DecisionsRequest).decisions
    except BadRequest:
        # A lone surrogate, which browsers write as \ud83d, makes the whole body invalid to a strict parser. A lenient
        # one splits it into entries, and only the entry with the surrogate is refused.
        entries = _taken_apart(data)
        if entries is None:
            raise
        return entries


def _taken_apart(data: bytes) -> list[bytes] | None:
    try:
        body = json.loads(data)
        entries = body["decisions"] if isinstance(body, dict) else None
        if not isinstance(entries, list) or len(entries) > MOST_DECISIONS:
            return None
        return [json.dumps(entry).encode() for entry in entries]
    except (ValueError, RecursionError, KeyError):
        return None


def _name_of(entry: msgspec.Raw | bytes) -> str | None:
    """Return the uuid of an invalid entry, None if it has none that can be sent back."""
    with suppress(BadRequest):
        return parsed(entry, _Named).uuid
    try:
        uuid = json.loads(bytes(entry))["uuid"]
        return uuid if isinstance(uuid, str) and uuid.encode() else None
    except (ValueError, RecursionError, TypeError, KeyError):
        return None


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder:
    return msgspec.json.Decoder(shape)

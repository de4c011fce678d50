"""The request schemas of all routes, with strict types and bounds.

Decisions are parsed one by one, so that an invalid one does not block the others.
"""

import json
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from annotator.records import SOURCES, list_sources

MAX_NAMED_ITEMS = 5000  # images or cells that a page names as in hand or passed; more are not read
MAX_DECISIONS_PER_REQUEST = 500  # of one request
MAX_CELLS_PER_BATCH = 10_000  # of one batch, as in pages/gallery/answer_panel.js: a second of the store's time
NO_TIME = msgspec.Raw(b"null")

Id = Annotated[int, Meta(ge=1, le=2**53)]
IdOrNone = Annotated[int, Meta(ge=0, le=2**53)]  # 0: a whole image, or no class
Count = Annotated[int, Meta(ge=0, le=2**53)]
Probability = Annotated[float, Meta(ge=0, le=1)]
Coordinate = Annotated[float, Meta(ge=-1e6, le=1e6)]
State = Literal[1, -1, 0]
ShortText = Annotated[str, Meta(max_length=100)]
Uuid = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.-]{8,100}\Z")]
PathText = Annotated[str, Meta(max_length=4096)]
ClassIds = Annotated[list[Id], Meta(max_length=1000)]
FactValues = Annotated[list[tuple[PathText, PathText]], Meta(max_length=100)]
ImageIds = Annotated[list[Id], Meta(max_length=100_000)]
CellIds = Annotated[list[tuple[Id, IdOrNone]], Meta(max_length=100_000)]
if TYPE_CHECKING:
    ClaimableSource = str
    AnySource = str
    FlagSource = str
else:
    ClaimableSource, AnySource = Literal[list_sources(claimable=True)], Literal[tuple(SOURCES)]
    FlagSource = Literal[(*list_sources(claimable=True), "aside")]


class BadRequest(ValueError):
    """The error of an invalid request."""


class EmptyRequest(Struct):
    """A request without content."""


class FilterRequest(Struct):
    """The filter of a request for images to review."""

    class_id: Id | None = field(default=None, name="class")
    low: Probability | None = field(default=None, name="from")
    high: Probability | None = field(default=None, name="to")
    kind: Literal["missing", "likely_mistakes", "annotator_disagreements"] = "missing"
    by: ShortText = ""


class _PageRequest(Struct, kw_only=True):
    holder: ShortText
    instead: ShortText = ""
    want: Count = 0


class WorkRequest(_PageRequest, kw_only=True):
    """A page's request for images (see `WantedImages`)."""

    mode: Literal["annotate", "review"]
    have: ImageIds = []
    passed: ImageIds = []
    only: FilterRequest = field(default_factory=FilterRequest, name="filter")
    order: ShortText = ""
    after: IdOrNone | None = None


class GridRequest(_PageRequest, kw_only=True):
    """A page's request for grids (see `WantedGrids`)."""

    size: Count
    class_id: Id | None = field(default=None, name="class")
    but: Id | None = None
    have: CellIds = []
    passed: CellIds = []
    selection: ShortText | None = None
    audit: bool | None = None


class ActionsRequest(_PageRequest, kw_only=True):
    """Autopilot's request for actions (see `WantedActions`).

    `extra` "none" requests none, and "beyond" requests open cells although the target recall is reached.
    """

    have: CellIds = []
    passed: CellIds = []
    tiles: Id | None = None
    extra: Literal["", "relabel", "audit", "beyond", "none"] = ""


class TimedTaskRequest(Struct):
    """A request to store the duration of a speed test task."""

    round: Annotated[int, Meta(ge=1, le=10_000)]
    task: Annotated[int, Meta(ge=0, le=1000)]
    kind: Literal["grid", "image", "click"]
    cells: Annotated[int, Meta(ge=1, le=1000)]
    changes: Annotated[int, Meta(ge=0, le=3000)]
    milliseconds: Annotated[float, Meta(ge=1, le=600_000)]


class ItemsRequest(Struct):
    """A request for images that were displayed before."""

    images: ImageIds


class NeighborsRequest(Struct):
    image: Id
    by: Literal["name", "time"] = "name"


class AddClassRequest(Struct):
    """A request to add a class (`sure`: the person has confirmed the warnings)."""

    name: Annotated[str, Meta(max_length=1000)]
    sure: bool = False


class AnsweringRequest(Struct):
    """A request to store the annotator's answer mode."""

    mode: Literal["one", "all"]


class UndoRuleOutRequest(Struct):
    """A request to undo marking a class absent everywhere."""

    batch: Uuid


class HistoryRequest(Struct):
    image: Id


class RelatedRequest(Struct):
    """A request for an image's near-duplicates or event."""

    image: Id


class ClassRequest(Struct):
    class_id: Id = field(name="class")


class FindRequest(Struct):
    """A request for images whose name contains a text."""

    text: PathText
    count: Count


class SelectRequest(Struct):
    """A request to select the images inside a polygon on the map."""

    polygon: Annotated[list[tuple[Coordinate, Coordinate]], Meta(min_length=3, max_length=20_000)]


class ColorsRequest(Struct):
    """A request for one color byte per map point, by stage, class, probability or field."""

    by: Literal["stage", "class", "probability", "fact"]
    class_id: IdOrNone = field(default=0, name="class")
    fact: PathText = ""


class UploadQuery(Struct):
    """The query parameter with the name of an uploaded file."""

    name: Annotated[str, Meta(min_length=1, max_length=1000)]


class ScoredImage(Struct):
    """Part of a request: an external model's scores of one image, named by file name or sha256."""

    scores: Annotated[dict[PathText, float], Meta(max_length=10_000)]
    image: PathText = ""
    sha256: Annotated[str, Meta(pattern=r"\A([0-9A-Fa-f]{64})?\Z")] = ""

    def __post_init__(self) -> None:
        if bool(self.image) == bool(self.sha256):
            raise ValueError("an image has either `image` or `sha256`")


class PredictionsRequest(Struct):
    """A request with an external model's scores of images."""

    name: ShortText
    images: Annotated[list[ScoredImage], Meta(min_length=1, max_length=MAX_NAMED_ITEMS)]
    scale: Literal["probability", "score"] = "probability"
    only_known: bool = False


class ImagePath(Struct):
    image_id: Id


class PictureQuery(Struct):
    full: ShortText = ""


class HeatmapPath(Struct):
    """The path parameters that name a heat map: run, image and class."""

    run_id: Id
    image_id: Id
    class_id: Id


class _DecisionRequest(Struct, kw_only=True, tag_field="action"):
    """The base of the requests that store a decision."""

    uuid: Uuid
    source: ClaimableSource = "click"
    # annotator, signature: author and the author's token, empty for the person at the page
    annotator: ShortText = ""
    signature: Annotated[str, Meta(max_length=1000)] | None = field(default=None, name="pass")
    # time taken, unparsed. Invalid ones are ignored
    milliseconds: msgspec.Raw = NO_TIME
    batch: Uuid | None = None

    @property
    def action(self) -> str:
        return str(type(self).__struct_config__.tag)


class LabelRequest(_DecisionRequest, kw_only=True, tag="label"):
    """A request to store the label of one cell (image and class)."""

    image: Id
    class_id: Id = field(name="class")
    state: State
    run: Id | None = None
    score: Probability | None = None


class BatchRequest(_DecisionRequest, kw_only=True, tag="batch"):
    """A request with labels of many cells: image, class, state (null clears), probability, and event `copies`."""

    cells: Annotated[list[tuple[Id, Id, State | None, Probability | None]], Meta(max_length=MAX_CELLS_PER_BATCH)]
    run: Id | None = None
    copies: Annotated[list[tuple[Id, Id, State, Id]], Meta(max_length=MAX_CELLS_PER_BATCH)] = []


class DoneRequest(_DecisionRequest, kw_only=True, tag="done"):
    """A request to store that no further class is present in an image."""

    image: Id


class SkipRequest(_DecisionRequest, kw_only=True, tag="skip"):
    """A request to store that an image was skipped."""

    image: Id


class FlagRequest(_DecisionRequest, kw_only=True, tag="flag"):
    """A request to flag an image, which may exclude it."""

    source: FlagSource = "click"
    image: Id
    note: Annotated[str, Meta(max_length=100_000)] | None = ""


class ClearRequest(_DecisionRequest, kw_only=True, tag="clear"):
    image: Id
    class_id: Id = field(name="class")


class CommentRequest(_DecisionRequest, kw_only=True, tag="comment"):
    image: Id
    note: Annotated[str, Meta(max_length=100_000)]


class UndoRequest(_DecisionRequest, kw_only=True, tag="undo"):
    """A request to undo a decision by uuid, a batch by "<uuid>:0", or the newest decision."""

    source: AnySource = "click"
    undoes: Annotated[str, Meta(max_length=120)] | None = None


AnyDecisionRequest = (
    LabelRequest | BatchRequest | DoneRequest | SkipRequest | FlagRequest | ClearRequest | CommentRequest | UndoRequest
)


class DecisionsRequest(Struct):
    """The request body with a list of decisions, each still raw JSON."""

    decisions: Annotated[list[msgspec.Raw], Meta(max_length=MAX_DECISIONS_PER_REQUEST)]


class _UuidOnly(Struct):
    uuid: str


Shape = TypeVar("Shape")


def parse_body(data: bytes, shape: type[Shape]) -> Shape:
    """Parse a JSON body, or raise BadRequest."""
    return _decode_json(data, shape)


def _decode_json(data: bytes | msgspec.Raw, shape: Any) -> Any:
    try:
        return _get_decoder(shape).decode(data)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    except RecursionError as error:
        raise BadRequest("it is nested too deeply") from error


def convert_values(values: dict[str, Any], shape: type[Shape]) -> Shape:
    """Parse path or query values, or raise BadRequest."""
    try:
        return msgspec.convert(values, shape, strict=False)
    except ValueError as error:
        raise BadRequest(str(error)) from error


def parse_decisions(data: bytes) -> tuple[list[AnyDecisionRequest], dict[str, str]]:
    """Return valid decisions, and refusals by uuid (or "#1" for the first). Raises BadRequest if it is not a list."""
    given, refused = [], {}
    for place, entry in enumerate(_parse_entries(data), start=1):
        try:
            given.append(_decode_json(entry, AnyDecisionRequest))
        except BadRequest as problem:
            refused[_find_uuid(entry) or f"#{place}"] = f"not a decision: {problem}"
    return given, refused


def parse_milliseconds(given: AnyDecisionRequest) -> float | None:
    if given.milliseconds is NO_TIME:
        return None
    with suppress(ValueError, RecursionError):
        return _get_decoder(float | None).decode(given.milliseconds)
    return None


def _parse_entries(data: bytes) -> list[msgspec.Raw] | list[bytes]:
    try:
        return parse_body(data, DecisionsRequest).decisions
    except BadRequest:
        # A lone surrogate, which browsers write as \ud83d, makes the whole body invalid to a strict parser. A lenient
        # one splits it into entries, and only the entry with the surrogate is refused.
        entries = _split_leniently(data)
        if entries is None:
            raise
        return entries


def _split_leniently(data: bytes) -> list[bytes] | None:
    try:
        body = json.loads(data)
        entries = body["decisions"] if isinstance(body, dict) else None
        if not isinstance(entries, list) or len(entries) > MAX_DECISIONS_PER_REQUEST:
            return None
        return [json.dumps(entry).encode() for entry in entries]
    except (ValueError, RecursionError, KeyError):
        return None


def _find_uuid(entry: msgspec.Raw | bytes) -> str | None:
    with suppress(BadRequest):
        return parse_body(entry, _UuidOnly).uuid
    try:
        uuid = json.loads(bytes(entry))["uuid"]
        return uuid if isinstance(uuid, str) and uuid.encode() else None
    except (ValueError, RecursionError, TypeError, KeyError):
        return None


@cache
def _get_decoder(shape: Any) -> msgspec.json.Decoder:
    return msgspec.json.Decoder(shape)

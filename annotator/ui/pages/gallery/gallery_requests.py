"""The requests of the Gallery, with its filters as fields."""

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from annotator.snapshot.filters import FILTERS, Filter, FilterKind
from annotator.snapshot.similarity.image_similarity import MAX_EXAMPLES
from annotator.snapshot.sorts import SORTS
from annotator.ui.shared.requests import ClassIds, Count, FactValues, Id, PathText, ShortText

# kinds of filters that are None unless they are given
OPTIONAL_KINDS = (FilterKind.SWITCH, FilterKind.DAY, FilterKind.DAYS, FilterKind.RANGE)
ExampleId = Annotated[str, Meta(pattern=r"\A([0-9a-f]{16})?\Z")]  # "": none
Fraction = Annotated[float, Meta(ge=0, le=1)]
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]


def _get_value_type(one: Filter) -> Any:
    if one.allowed_values:
        return Literal[("", *one.allowed_values)]
    return {
        FilterKind.CLASSES: ClassIds,
        FilterKind.SWITCH: bool | None,
        FilterKind.CHOICE: ShortText,
        FilterKind.TEXT: PathText,
        FilterKind.DAY: date | None,
        FilterKind.DAYS: tuple[date | None, date | None] | None,
        FilterKind.RANGE: tuple[Number | None, Number | None] | None,
        FilterKind.FACTS: FactValues,
    }[one.kind]


if TYPE_CHECKING:
    GalleryFilterRequest = Struct
    SortName = str
else:
    SortName = Literal[tuple(one.name for one in SORTS)]
    # snapshot.filters.FILTERS, field by field; "from" is no name in Python, so that all have another one there.
    GalleryFilterRequest = msgspec.defstruct(
        "GalleryFilterRequest",
        [
            (f"{one.name}_", _get_value_type(one), field(default_factory=list, name=one.name))
            if one.kind in (FilterKind.CLASSES, FilterKind.FACTS)
            else (
                f"{one.name}_",
                _get_value_type(one),
                field(default=None if one.kind in OPTIONAL_KINDS else "", name=one.name),
            )
            for one in FILTERS
        ],
    )


class GalleryRequest(Struct, kw_only=True):
    """The base of Gallery requests: the fields that define a listing (`version` as displayed)."""

    only: GalleryFilterRequest = field(default_factory=GalleryFilterRequest, name="filter")
    sort: SortName = "name"
    class_id: Id | None = field(default=None, name="class")
    like: Annotated[list[Id], Meta(max_length=MAX_EXAMPLES)] = field(default_factory=list[Id])
    example: ExampleId = ""
    column: PathText = ""
    down: bool = False
    version: ShortText = ""


class GalleryWindowRequest(GalleryRequest, kw_only=True):
    """A request for `count` images of a listing from position `start` on."""

    start: Count
    count: Count


class GalleryPlaceRequest(GalleryRequest, kw_only=True):
    """A request for the position of an image in a listing."""

    image: Id


class GalleryCountsRequest(GalleryRequest, kw_only=True):
    """A request to count a listing's images per value of a field."""

    fact: PathText


class GalleryIdsRequest(GalleryRequest, kw_only=True):
    """A request for the images at positions `first` to `last` of a listing."""

    first: Count
    last: Count


class ExamplePictureQuery(Struct):
    """The query parameter with the name of an image that is uploaded to search by."""

    name: Annotated[str, Meta(min_length=1, max_length=1000)]


class ExampleRequest(Struct):
    """A request to search by words, or by a region of an image."""

    words: Annotated[str, Meta(max_length=1000)] = ""
    image: Id | None = None
    box: tuple[Fraction, Fraction, Fraction, Fraction] = (0.0, 0.0, 1.0, 1.0)


class ExampleStateRequest(Struct):
    """A request for the state of a search example."""

    example: Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z")]

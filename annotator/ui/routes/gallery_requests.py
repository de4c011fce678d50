"""The requests of the Gallery, whose fields are its filters (snapshot/filters.py); parsed as all are (requests.py)."""

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from annotator.snapshot.filters import FILTERS, Filter, Kind
from annotator.snapshot.likeness.similar import MOST_EXAMPLES
from annotator.snapshot.sorts import SORTS
from annotator.ui.routes.requests import Classes, Count, Facts, Id, Path, Text

UNSET = (Kind.SWITCH, Kind.DAY, Kind.DAYS, Kind.RANGE)  # kinds of filters that are None unless they are given
ExampleId = Annotated[str, Meta(pattern=r"\A([0-9a-f]{16})?\Z")]  # "": none
Side = Annotated[float, Meta(ge=0, le=1)]
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]


def _given(one: Filter) -> Any:
    """Return the type of the value that a request gives to a filter."""
    if one.allowed:
        return Literal[("", *one.allowed)]
    return {
        Kind.CLASSES: Classes,
        Kind.SWITCH: bool | None,
        Kind.CHOICE: Text,
        Kind.TEXT: Path,
        Kind.DAY: date | None,
        Kind.DAYS: tuple[date | None, date | None] | None,
        Kind.RANGE: tuple[Number | None, Number | None] | None,
        Kind.FACTS: Facts,
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
            (f"{one.name}_", _given(one), field(default_factory=list, name=one.name))
            if one.kind in (Kind.CLASSES, Kind.FACTS)
            else (f"{one.name}_", _given(one), field(default=None if one.kind in UNSET else "", name=one.name))
            for one in FILTERS
        ],
    )


class GalleryRequest(Struct, kw_only=True):
    """A listing of the Gallery; version: of the listing that is on screen."""

    only: GalleryFilterRequest = field(default_factory=GalleryFilterRequest, name="filter")
    sort: SortName = "name"
    class_id: Id | None = field(default=None, name="class")
    like: Annotated[list[Id], Meta(max_length=MOST_EXAMPLES)] = field(default_factory=list[Id])
    example: ExampleId = ""
    column: Path = ""
    down: bool = False
    version: Text = ""


class GalleryWindowRequest(GalleryRequest, kw_only=True):
    """A part of a listing."""

    start: Count
    count: Count


class GalleryPlaceRequest(GalleryRequest, kw_only=True):
    """An image whose place in a listing is wanted."""

    image: Id


class GalleryCountsRequest(GalleryRequest, kw_only=True):
    """A fact by whose values the images of a filter are counted."""

    fact: Path


class GalleryIdsRequest(GalleryRequest, kw_only=True):
    """A range of a listing, both ends included."""

    first: Count
    last: Count


class PictureQuery(Struct):
    """The name of a picture that all images are to be compared with."""

    name: Annotated[str, Meta(min_length=1, max_length=1000)]


class ExampleRequest(Struct):
    """Words, or a part of an image, that all images are to be compared with."""

    words: Annotated[str, Meta(max_length=1000)] = ""
    image: Id | None = None
    box: tuple[Side, Side, Side, Side] = (0.0, 0.0, 1.0, 1.0)


class ExampleStateRequest(Struct):
    """An example that the worker may have answered."""

    example: Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z")]

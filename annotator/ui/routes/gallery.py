"""The routes of the Gallery: parts of a listing, the place of an image, ids of a range, counts; images by name."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.errors import AnnotatorError
from annotator.roles import Right
from annotator.snapshot import fact_groups, gallery
from annotator.snapshot.filters import FILTERS, GalleryFilter, Kind
from annotator.snapshot.gallery import Sorting, Window
from annotator.snapshot.likeness.varied import CANDIDATES, varied
from annotator.snapshot.sorts import BY_COLUMN, BY_NAME
from annotator.store.database import versions
from annotator.store.gallery.tiles import Tile
from annotator.store.images import selections
from annotator.store.people import blindness
from annotator.ui.access import context
from annotator.ui.routes import shapes
from annotator.ui.routes.gallery_requests import (
    GalleryCountsRequest,
    GalleryIdsRequest,
    GalleryPlaceRequest,
    GalleryRequest,
    GalleryWindowRequest,
)
from annotator.ui.routes.guard import FRESH, blind_as, body_of, guarded
from annotator.ui.routes.requests import FindRequest, parsed

MOST_TILES = 500
MOST_FOUND = 100


async def window(request: Request, annotator: str) -> Response:
    """POST {filter?, sort?, class?, down?, version?, start, count} -> a part of a listing.

    The answer is {total, start, version, changed, class_version, images}.

    filter     {has, lacks, open: [class], complete, flagged: true or false, source, by, from, to: "2026-01-31", folder,
               name, size: [from, below], captured: [first day, last day], facts: [[name, value]], ...}, all optional
               (snapshot.filters.FILTERS)
    sort       name, probability (of `class`), like (the images `like`, or `example` of like.py), column (the imported
               `column`), ... (snapshot.sorts.SORTS); down: reversed
    version    of the answer before, for as long as the same listing is scrolled through
    changed    a listing made now might differ from this one
    images     at most MOST_TILES: {id, name, width, height, labels: [[class, state]], flag, comments, complete}, and
               probability, or in words the measure, when sorted by it; of one that this person is still to answer
               blind nothing but what it is, and hidden: true
    """
    asked, blind = parsed(await body_of(request), GalleryWindowRequest), blind_as(request, annotator)
    return JSONResponse(await run_sync(_window, asked, blind), headers=FRESH)


async def place(request: Request, annotator: str) -> Response:
    """POST {filter?, sort?, class?, down?, version?, image} -> {place (null: not shown), total, version}."""
    asked, blind = parsed(await body_of(request), GalleryPlaceRequest), blind_as(request, annotator)
    return JSONResponse(await run_sync(_place, asked, blind), headers=FRESH)


async def ids(request: Request, annotator: str) -> Response:
    """POST {filter?, sort?, class?, down?, version?, first, last} -> {ids}: of the places from first to last.

    Both ends are included; more than gallery.MOST_IDS places are refused.
    """
    asked, blind = parsed(await body_of(request), GalleryIdsRequest), blind_as(request, annotator)
    return JSONResponse(await run_sync(_ids, asked, blind), headers=FRESH)


async def counts(request: Request, annotator: str) -> Response:
    """POST {filter?, fact} -> {label, kind, bars: [{label, given, count}], unknown}: how many images have each value.

    fact       the name of a fact, or "column:" and that of an imported column (snapshot.facts)
    kind       choice, number, time
    bars       at most fact_groups.MOST_BARS; given: what the fact's filter is given to show exactly these, or ""
    unknown    images of which the fact is not known
    """
    asked, blind = parsed(await body_of(request), GalleryCountsRequest), blind_as(request, annotator)
    return JSONResponse(await run_sync(_counts, asked, blind), headers=FRESH)


async def varied_grid(request: Request, annotator: str) -> Response:
    """POST {filter?, sort: "like", like or example} -> {selection, images}: a varied few of the likest images.

    They are a selection for the grid (snapshot/likeness/varied.py).
    """
    asked, blind = parsed(await body_of(request), GalleryRequest), blind_as(request, annotator)
    return JSONResponse(await run_sync(_varied_grid, asked, blind, annotator), headers=FRESH)


async def find(request: Request, annotator: str) -> Response:
    """POST {text, count} -> {images: [{id, name}]}: images by a part of their file name, the best first."""
    asked = parsed(await body_of(request), FindRequest)
    images = await run_sync(gallery.find, context.db(), asked.text, min(asked.count, MOST_FOUND))
    return JSONResponse({"images": [{"id": image_id, "name": name} for image_id, name in images]}, headers=FRESH)


ROUTES = [
    Route("/api/gallery", guarded(window, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/gallery/place", guarded(place, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/gallery/ids", guarded(ids, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/gallery/counts", guarded(counts, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/gallery/grid", guarded(varied_grid, Right.ANSWER, "gallery"), methods=["POST"]),
    Route("/api/find", guarded(find, Right.LOOK), methods=["POST"]),
]


def _window(asked: GalleryWindowRequest, blind: str) -> dict[str, Any]:
    db, count = context.db(), min(asked.count, MOST_TILES)
    part = gallery.window(db, _filter(asked, blind), _sorting(asked), asked.start, count, asked.version)
    hidden = blindness.show(db, blind, [tile.image.id for tile in part.images]) if blind else set()
    return {
        "total": part.total,
        "start": part.start,
        "version": part.version,
        "changed": part.changed,
        "class_version": versions.class_version(db),
        "images": [_tile(tile, part, tile.image.id in hidden) for tile in part.images],
    }


def _tile(tile: Tile, part: Window, hidden: bool) -> dict[str, Any]:
    id_, image = tile.image.id, shapes.image(tile.image)
    if id_ in part.measures:
        image["measure"] = part.measures[id_]
    if hidden:
        nothing = {"labels": [], "flag": None, "comments": 0, "complete": False}
        return image | nothing | {"hidden": True}
    shown = (
        image
        | {
            "labels": tile.labels,
            "flag": tile.flag or None,
            "comments": tile.comments,
            "complete": tile.complete,
        }
        | ({"aside": True} if tile.aside else {})
    )
    probability = part.probabilities.get(id_)
    return shown if probability is None else shown | {"probability": probability}


def _place(asked: GalleryPlaceRequest, blind: str) -> dict[str, Any]:
    shown = gallery.listing(context.db(), _filter(asked, blind), _sorting(asked), asked.version)
    return {"place": shown.place(asked.image), "total": len(shown.rows), "version": shown.version}


def _ids(asked: GalleryIdsRequest, blind: str) -> dict[str, Any]:
    return {
        "ids": gallery.ids_between(
            context.db(), _filter(asked, blind), _sorting(asked), asked.first, asked.last, asked.version
        )
    }


def _counts(asked: GalleryCountsRequest, blind: str) -> dict[str, Any]:
    return asdict(fact_groups.counts(context.db(), _filter(asked, blind), asked.fact, blind))


def _varied_grid(asked: GalleryRequest, blind: str, annotator: str) -> dict[str, Any]:
    db = context.db()
    shown = gallery.listing(db, replace(_filter(asked, blind), blind=blind), _sorting(asked))
    ids = varied(db, shown.ids(0, CANDIDATES))
    if not ids:
        raise AnnotatorError("No image is left for a grid: all that the filter shows are answered. Change the filter.")
    return {"selection": selections.save(db, np.array(ids, np.int64), annotator), "images": len(ids)}


def _filter(asked: GalleryRequest, blind: str) -> GalleryFilter:
    values = {one.name: getattr(asked.only, f"{one.name}_") for one in FILTERS}
    values |= {one.name: sorted(set(values[one.name])) for one in FILTERS if one.kind == Kind.CLASSES}
    given = GalleryFilter.build(**values)
    # Which images any other list holds, and where, tells what is known of them, or that, when or by whom it was said.
    # An order by words is what the network would guess of a class of that name, and by a picture nearly so.
    tells = given.reveals_labels or BY_NAME[asked.sort].reveals_labels or bool(asked.sort == "like" and asked.example)
    return replace(given, blind=blind) if tells else given


def _sorting(asked: GalleryRequest) -> Sorting:
    of_class = asked.class_id if asked.sort == "probability" else None
    example = asked.example if asked.sort == "like" else ""
    like = tuple(asked.like) if asked.sort == "like" and not example else ()
    return Sorting(asked.sort, asked.down, of_class, like, example, asked.column if asked.sort == BY_COLUMN else "")

"""The Gallery's routes: windows, places, ids, counts and name search."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.errors import AnnotatorError
from annotator.roles import Right
from annotator.snapshot import fact_groups, gallery_listing
from annotator.snapshot.filters import FILTERS, FilterKind, GalleryFilter
from annotator.snapshot.gallery_listing import ListingWindow, Sorting
from annotator.snapshot.similarity.varied_images import MAX_CANDIDATES, select_varied
from annotator.snapshot.sorts import COLUMN_SORT, SORTS_BY_NAME
from annotator.store.database import versions
from annotator.store.gallery.tiles import Tile
from annotator.store.images import selections
from annotator.store.people import blindness
from annotator.ui.access import served_project
from annotator.ui.pages.gallery.gallery_requests import (
    GalleryCountsRequest,
    GalleryIdsRequest,
    GalleryPlaceRequest,
    GalleryRequest,
    GalleryWindowRequest,
)
from annotator.ui.shared import responses
from annotator.ui.shared.guard import NO_STORE_HEADERS, get_blind_annotator, guard_route, read_body
from annotator.ui.shared.requests import FindRequest, parse_body

MAX_TILES = 500
MAX_IMAGES_FOUND = 100


async def window(request: Request, annotator: str) -> Response:
    """Handle POST {filter?, sort?, class?, down?, version?, start, count}: return a part of a listing.

    The response is {total, start, version, changed, class_version, images}.

    filter     {has, lacks, open: [class], from: "2026-01-31", size: [from, below], ...} (FILTERS)
    sort       name, probability (of `class`), like (`like` or `example`), ... (SORTS), reversed by `down`
    version    from the previous response
    changed    a new listing might differ
    images     at most MAX_TILES: {id, name, width, height, labels: [[class, state]], flag, comments,
               complete}. Images that the annotator must still answer blind have hidden: true and no labels.
    """
    asked, blind = parse_body(await read_body(request), GalleryWindowRequest), get_blind_annotator(request, annotator)
    return JSONResponse(await run_sync(_build_window, asked, blind), headers=NO_STORE_HEADERS)


async def place(request: Request, annotator: str) -> Response:
    """Handle POST {image, ...} -> {place or null, total, version}: find an image's position in a listing."""
    asked, blind = parse_body(await read_body(request), GalleryPlaceRequest), get_blind_annotator(request, annotator)
    return JSONResponse(await run_sync(_find_place, asked, blind), headers=NO_STORE_HEADERS)


async def ids(request: Request, annotator: str) -> Response:
    """Handle POST {listing, first, last} -> {ids}: return image ids at positions first to last (limited)."""
    asked, blind = parse_body(await read_body(request), GalleryIdsRequest), get_blind_annotator(request, annotator)
    return JSONResponse(await run_sync(_list_ids, asked, blind), headers=NO_STORE_HEADERS)


async def counts(request: Request, annotator: str) -> Response:
    """Handle POST {filter?, fact} -> {label, kind, bars, unknown}: count images per field value.

    fact       a field, or "column:" and an imported column
    kind       choice, number, time
    bars       [{label, given (filter value or ""), count}]
    unknown    images without a value
    """
    asked, blind = parse_body(await read_body(request), GalleryCountsRequest), get_blind_annotator(request, annotator)
    return JSONResponse(await run_sync(_count_fact_values, asked, blind), headers=NO_STORE_HEADERS)


async def varied_grid(request: Request, annotator: str) -> Response:
    """Handle POST {filter?, sort, like or example} -> {selection, images}: save a varied grid."""
    asked, blind = parse_body(await read_body(request), GalleryRequest), get_blind_annotator(request, annotator)
    return JSONResponse(await run_sync(_build_varied_grid, asked, blind, annotator), headers=NO_STORE_HEADERS)


async def find(request: Request, annotator: str) -> Response:
    """Handle POST {text, count} -> {images}: find images by file name."""
    asked = parse_body(await read_body(request), FindRequest)
    images = await run_sync(
        gallery_listing.find_images, served_project.db(), asked.text, min(asked.count, MAX_IMAGES_FOUND)
    )
    return JSONResponse(
        {"images": [{"id": image_id, "name": name} for image_id, name in images]}, headers=NO_STORE_HEADERS
    )


ROUTES = [
    Route("/api/gallery", guard_route(window, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/gallery/place", guard_route(place, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/gallery/ids", guard_route(ids, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/gallery/counts", guard_route(counts, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/gallery/grid", guard_route(varied_grid, Right.ANSWER, "gallery"), methods=["POST"]),
    Route("/api/find", guard_route(find, Right.LOOK), methods=["POST"]),
]


def _build_window(asked: GalleryWindowRequest, blind: str) -> dict[str, Any]:
    db, count = served_project.db(), min(asked.count, MAX_TILES)
    part = gallery_listing.get_window(
        db, _build_filter(asked, blind), _build_sorting(asked), asked.start, count, asked.version
    )
    hidden = blindness.reveal_visible_images(db, blind, [tile.image.id for tile in part.images]) if blind else set()
    return {
        "total": part.total,
        "start": part.start,
        "version": part.version,
        "changed": part.changed,
        "class_version": versions.get_class_version(db),
        "images": [_build_tile(tile, part, tile.image.id in hidden) for tile in part.images],
    }


def _build_tile(tile: Tile, part: ListingWindow, hidden: bool) -> dict[str, Any]:
    id_, image = tile.image.id, responses.build_image(tile.image)
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


def _find_place(asked: GalleryPlaceRequest, blind: str) -> dict[str, Any]:
    shown = gallery_listing.get_listing(
        served_project.db(), _build_filter(asked, blind), _build_sorting(asked), asked.version
    )
    return {"place": shown.find_place(asked.image), "total": len(shown.rows), "version": shown.version}


def _list_ids(asked: GalleryIdsRequest, blind: str) -> dict[str, Any]:
    return {
        "ids": gallery_listing.list_ids_between(
            served_project.db(),
            _build_filter(asked, blind),
            _build_sorting(asked),
            asked.first,
            asked.last,
            asked.version,
        )
    }


def _count_fact_values(asked: GalleryCountsRequest, blind: str) -> dict[str, Any]:
    return asdict(fact_groups.count_images(served_project.db(), _build_filter(asked, blind), asked.fact, blind))


def _build_varied_grid(asked: GalleryRequest, blind: str, annotator: str) -> dict[str, Any]:
    db = served_project.db()
    shown = gallery_listing.get_listing(db, replace(_build_filter(asked, blind), blind=blind), _build_sorting(asked))
    ids = select_varied(db, shown.get_ids(0, MAX_CANDIDATES))
    if not ids:
        raise AnnotatorError("No image is left for a grid: all that the filter shows are answered. Change the filter.")
    return {"selection": selections.save(db, np.array(ids, np.int64), annotator), "images": len(ids)}


def _build_filter(asked: GalleryRequest, blind: str) -> GalleryFilter:
    values = {one.name: getattr(asked.only, f"{one.name}_") for one in FILTERS}
    values |= {one.name: sorted(set(values[one.name])) for one in FILTERS if one.kind == FilterKind.CLASSES}
    given = GalleryFilter.build(**values)
    # Which images any other list holds, and where, tells what is known of them, or that, when or by whom it was said.
    # An order by words is what the network would guess of a class of that name, and by a picture nearly so.
    tells = (
        given.reveals_labels or SORTS_BY_NAME[asked.sort].reveals_labels or bool(asked.sort == "like" and asked.example)
    )
    return replace(given, blind=blind) if tells else given


def _build_sorting(asked: GalleryRequest) -> Sorting:
    of_class = asked.class_id if asked.sort == "probability" else None
    example = asked.example if asked.sort == "like" else ""
    like = tuple(asked.like) if asked.sort == "like" and not example else ()
    return Sorting(asked.sort, asked.down, of_class, like, example, asked.column if asked.sort == COLUMN_SORT else "")

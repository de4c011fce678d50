"""The routes of the map: points as raw bytes, and selections."""

import json

import numpy as np
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.snapshot import fact_colors, image_map
from annotator.store.labels import project_counts
from annotator.store.people import blindness
from annotator.ui.access import served_project
from annotator.ui.shared.guard import NO_STORE_HEADERS, get_blind_annotator, guard_route, read_body
from annotator.ui.shared.requests import ColorsRequest, SelectRequest, convert_values, parse_body

BINARY_MEDIA_TYPE = "application/octet-stream"
MAX_COORDINATE = 65535  # a coordinate of 1
STAMP_HEADER = "x-annotator-map"  # which map the bytes are about


async def points(request: Request, annotator: str) -> Response:
    """Handle GET: return image positions as little-endian bytes.

    Four uint32 (points, placed images, all images, a stamp identifying the map), then ids (uint32), x and y
    (uint16, 65535 is 1, y down).
    """
    return Response(await run_sync(_pack_points), media_type=BINARY_MEDIA_TYPE, headers=NO_STORE_HEADERS)


async def colors(request: Request, annotator: str) -> Response:
    """Handle GET ?by=stage|class|probability|fact (&class=ID, &fact=NAME): return one byte per map point.

    An HTTP header has the map's stamp. For a fact (a field), JSON that describes the bytes follows. Images that the
    annotator must still answer blind get neutral bytes.
    """
    asked = convert_values(dict(request.query_params), ColorsRequest)
    stamp, content = await run_sync(_pack_colors, asked, get_blind_annotator(request, annotator))
    return Response(content, media_type=BINARY_MEDIA_TYPE, headers={**NO_STORE_HEADERS, STAMP_HEADER: str(stamp)})


async def select(request: Request, annotator: str) -> Response:
    """Handle POST {polygon: [[x, y], ...]} -> {selection, images, kept}: save the images inside the polygon.

    `images` is the number of images inside, `kept` the number of saved ones.
    """
    polygon = np.array(parse_body(await read_body(request), SelectRequest).polygon, np.float64)
    selection, count, saved = await run_sync(image_map.save_selection, served_project.db(), polygon, annotator)
    return JSONResponse({"selection": selection, "images": count, "kept": saved}, headers=NO_STORE_HEADERS)


ROUTES = [
    Route("/api/map", guard_route(points, Right.LOOK, "map")),
    Route("/api/map/colors", guard_route(colors, Right.LOOK, "map")),
    Route("/api/map/select", guard_route(select, Right.LOOK, "map"), methods=["POST"]),
]


def _pack_points() -> bytes:
    db = served_project.db()
    image_map_ = image_map.get_current_map(db)
    all_images = project_counts.count_images_by_stage(db)["all"]
    if image_map_ is None:
        return np.array([0, 0, all_images, 0], "<u4").tobytes()
    head = np.array([len(image_map_.drawn_rows), len(image_map_.image_ids), all_images, image_map_.stamp], "<u4")
    places = (
        np.rint(axis[image_map_.drawn_rows] * MAX_COORDINATE).astype("<u2") for axis in (image_map_.x, image_map_.y)
    )
    ids = image_map_.image_ids[image_map_.drawn_rows].astype("<u4")
    return b"".join(part.tobytes() for part in (head, ids, *places))


def _pack_colors(asked: ColorsRequest, blind: str) -> tuple[int, bytes]:
    db = served_project.db()
    image_map_ = image_map.get_current_map(db)
    if image_map_ is None:
        return 0, b""
    ids = image_map_.image_ids[image_map_.drawn_rows]

    def is_hidden() -> np.ndarray:
        return (
            np.isin(ids, list(blindness.reveal_visible_images(db, blind, ids.tolist())))
            if blind
            else np.zeros(len(ids), bool)
        )

    if asked.by == "fact":
        fact, of_fact = fact_colors.load_values(db, image_map_, asked.fact)
        if fact.reveals_labels:
            of_fact = fact_colors.hide_rows(of_fact, is_hidden())
        values, meaning = fact_colors.encode_colors(fact, of_fact)
        return image_map_.stamp, values.tobytes() + json.dumps(meaning).encode()
    nothing = image_map.NO_PROBABILITY if asked.by == "probability" else 0
    if asked.by == "stage":
        values = image_map.load_stage_bytes(db, image_map_)
    elif asked.by == "class":
        values = image_map.load_state_bytes(db, image_map_, asked.class_id)
    else:
        values = image_map.load_probability_bytes(db, image_map_, asked.class_id)
    return image_map_.stamp, np.where(is_hidden(), np.uint8(nothing), values).tobytes()

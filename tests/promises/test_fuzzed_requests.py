"""Any request at all: made from the declared shape of each route, broken in one place or in its bytes.

ANNOTATOR_FUZZ=20000 in the environment tries so many, at random; a test run tries the same few hundred every time.
"""

import json
import logging
import os
from collections.abc import Iterator
from functools import cache

import msgspec
import numpy as np
import pytest
from harness.asked import Asked, asked
from harness.person import CLASSES, draw
from harness.published_runs import publish
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import inspect

from annotator.exchange.project_setup import set_up_project
from annotator.quality import audit_sampling
from annotator.records import SOURCES
from annotator.store.database.database import Database
from annotator.store.upkeep import consistency
from annotator.ui.access import served_project
from annotator.ui.pages.gallery import gallery_requests
from annotator.ui.routes import pictures_routes
from annotator.ui.shared import requests

MANY = int(os.environ.get("ANNOTATOR_FUZZ", "0"))
FUZZ = settings(
    max_examples=MANY or 500,
    derandomize=not MANY,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
POSTS = {
    "/api/work": requests.WorkRequest,
    "/api/grid": requests.GridRequest,
    "/api/autopilot": requests.ActionsRequest,
    "/api/answering": requests.AnsweringRequest,
    "/api/rule_out": requests.ClassRequest,
    "/api/rule_out/undo": requests.UndoRuleOutRequest,
    "/api/speed_test": requests.EmptyRequest,
    "/api/speed_test/time": requests.TimedTaskRequest,
    "/api/items": requests.ItemsRequest,
    "/api/examples": requests.ClassRequest,
    "/api/classes": requests.EmptyRequest,
    "/api/recent": requests.EmptyRequest,
    "/api/history": requests.HistoryRequest,
    "/api/map/select": requests.SelectRequest,
    "/api/gallery": gallery_requests.GalleryWindowRequest,
    "/api/gallery/place": gallery_requests.GalleryPlaceRequest,
    "/api/gallery/grid": gallery_requests.GalleryRequest,
    "/api/gallery/ids": gallery_requests.GalleryIdsRequest,
    "/api/gallery/counts": gallery_requests.GalleryCountsRequest,
    "/api/like": gallery_requests.ExampleRequest,
    "/api/like/state": gallery_requests.ExampleStateRequest,
    "/api/find": requests.FindRequest,
    "/api/decisions": requests.DecisionsRequest,
}
GETS = {
    "/api/image/{image_id}": requests.ImagePath,
    "/api/thumb/{image_id}": requests.ImagePath,
    "/api/heatmap/{run_id}/{image_id}/{class_id}": requests.HeatmapPath,
    "/api/map/colors?by={by}&class={class}": requests.ColorsRequest,
}
ODD = [
    None, True, False, -1, 0, 1, 0.6, -3.0, 5, 2**53 + 1, 2**63 - 1, 2**63, 2**200, -(2**70), 1e308, float("inf"),
    float("nan"), "", "1", "one", "\ud800", "a\x00b", "\U0001f98a", "constructor", "x" * 3000, "a:1", [], {}, [[]],
    [None], {"": 1}, [[[[[[[[]]]]]]]], list(SOURCES), "import", "audit",
]  # fmt: skip
TEXTS = ["", "", "Ann", "Ann", "tab-one", "uuid-000", "uuid-001:0"]
NAMES = [f"uuid-{number:03}" for number in range(400)]  # not so many that none is used again


@pytest.fixture(scope="module")
def app(tmp_path_factory) -> Iterator[Asked]:
    """A project with a run and a drawn audit."""
    folder = tmp_path_factory.mktemp("fuzz")
    for number in range(24):
        draw(folder / "photos" / f"{number:02}.jpg", CLASSES[number % 3 : number % 3 + 1], seed=number, size=(24, 16))
    (folder / "classes.txt").write_text("\n".join(CLASSES))
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(folder / "project")
    publish(db, np.stack([np.linspace(0.02, 0.98, 24)] * 3, 1))
    audit_sampling.draw_audit(db, 12)
    with asked(folder / "project") as one:
        yield one


def of_type(shape: inspect.Type) -> SearchStrategy:
    """Values that fit a declared type, as they would be decoded from JSON; near the small ids that there are."""
    match shape:
        case inspect.IntType():
            low, high = shape.ge or 0, shape.le if shape.le is not None else 2**53
            return st.integers(low, min(high, 27)) | st.sampled_from([low, high])
        case inspect.FloatType():
            return st.floats(shape.ge, shape.le, allow_nan=False, allow_infinity=False)
        case inspect.StrType():
            return st.sampled_from(NAMES if shape.pattern else TEXTS)
        case inspect.LiteralType():
            return st.sampled_from(list(shape.values))
        case inspect.BoolType():
            return st.booleans()
        case inspect.DateType():
            return st.sampled_from(["0001-01-01", "2026-01-31", "9999-12-31"])
        case inspect.NoneType():
            return st.none()
        case inspect.ListType():
            least = shape.min_length or 0
            return st.lists(of_type(shape.item_type), min_size=least, max_size=least + 4)
        case inspect.TupleType():
            return st.tuples(*map(of_type, shape.item_types)).map(list)
        case inspect.UnionType():
            return st.one_of(*map(of_type, shape.types))
        case inspect.RawType():
            return st.integers(0, 5000)
        case inspect.StructType():
            needed = {one.encode_name: of_type(one.type) for one in shape.fields if one.required}
            others = {one.encode_name: of_type(one.type) for one in shape.fields if not one.required}
            made = st.fixed_dictionaries(needed, optional=others)
            return made.map(lambda one: one | {shape.tag_field: shape.tag}) if shape.tag_field else made
    raise AssertionError(f"the fuzz knows no {shape}")


@cache
def fitting(shape: object) -> SearchStrategy:
    if shape is requests.DecisionsRequest:
        return st.lists(fitting(requests.AnyDecisionRequest), max_size=5).map(lambda some: {"decisions": some})
    return of_type(inspect.type_info(shape))


@st.composite
def broken(draw: st.DrawFn, shape: object) -> object:
    """What fits the shape, with up to two values put in, taken away or wrapped somewhere in it."""
    body = draw(fitting(shape))
    for _ in range(draw(st.integers(0, 2))):
        body = _broken(draw, body)
    return body


def _broken(draw: st.DrawFn, value: object) -> object:
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not keys or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(ODD))
    key = draw(st.sampled_from(keys))
    copy = value.copy()
    if draw(st.integers(0, 5)) == 0:
        del copy[key]
    else:
        copy[key] = _broken(draw, value[key])
    return copy


@st.composite
def posts(draw: st.DrawFn) -> tuple[str, str, bytes]:
    path = draw(st.sampled_from([*POSTS, *["/api/decisions"] * (len(POSTS) // 2)]))
    data = json.dumps(draw(broken(POSTS[path]))).encode()
    if draw(st.integers(0, 9)) == 0 and data:
        place = draw(st.integers(0, len(data) - 1))
        data = data[:place] + draw(st.binary(max_size=3)) + data[place + draw(st.integers(0, 3)) :]
    return "POST", path, data


@st.composite
def gets(draw: st.DrawFn) -> tuple[str, str, bytes]:
    path = draw(st.sampled_from(list(GETS)))
    values = {"by": "stage", "class": 1} | draw(fitting(GETS[path]))
    if draw(st.booleans()):
        values[draw(st.sampled_from(list(values)))] = draw(
            st.sampled_from(
                ["", "x", "-1", "0", "1.5", "1e400", "9" * 30, "9" * 5000, "%00", "\u0664", " 1", str(2**63)]
            )
        )
    return draw(st.sampled_from(["GET", "GET", "GET", "POST", "DELETE"])), path.format(**values), b""


def test_fuzzed_requests_cause_no_server_error_and_keep_stored_labels_consistent(app, caplog, monkeypatch):
    monkeypatch.setattr(pictures_routes, "HEATMAP_WAIT_SECONDS", 0.0)
    answers: dict[int, int] = {}

    @FUZZ
    @given(st.one_of(posts(), posts(), gets()))
    def ask(request: tuple[str, str, bytes]) -> None:
        status, body = app.send(*request)
        assert status < 500, body
        if status >= 400 and status not in (404, 405):  # an address or a method that no route has
            assert msgspec.json.decode(body)["error"]
        if request[1] == "/api/decisions" and status == 200:
            told = msgspec.json.decode(body)
            assert not set(told["saved"]) & set(told["refused"]), "saved or refused, not both"
            assert all(told["refused"].values())
        answers[status] = answers.get(status, 0) + 1

    with caplog.at_level(logging.WARNING):
        ask()
    assert not caplog.records
    db = served_project.db()
    assert consistency.find_problems(db) == []
    assert answers.get(200, 0) > 100 and answers.get(400, 0) > 50, f"both kinds are met: {answers}"
    assert db.value("SELECT count(*) FROM decision WHERE action != 'undo'") > 10

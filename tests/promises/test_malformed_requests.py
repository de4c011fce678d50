"""What routes do with requests that no page of ours would send."""

import json
import logging
import uuid

import pytest
from harness.asked import Asked, asked
from harness.short_forms import mark_slow_after

from annotator.quality import audit_sampling
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.ui.access import served_project
from annotator.ui.access.tokens import DAY_SECONDS, Tokens


@pytest.fixture
def app(project):
    with asked(project) as one:
        yield one


def label(**more) -> dict:
    return {
        "uuid": str(uuid.uuid4()),
        "action": "label",
        "image": 1,
        "class": 1,
        "state": 1,
        "milliseconds": 800,
    } | more


def text_of(*entries: object) -> bytes:
    return b'{"decisions": [%s]}' % b", ".join(
        one if isinstance(one, bytes) else json.dumps(one).encode() for one in entries
    )


UNSTORABLE = {
    "half a letter": json.dumps({"uuid": "flag-one", "action": "flag", "image": 1, "note": "\ud83d"}).encode(),
    "no UTF-8": b'{"uuid": "flag-one", "action": "flag", "image": 1, "note": "\xff"}',
    "an id of 2^63": label(uuid="flag-one", image=2**63),
    "an id of 2^200": label(uuid="flag-one", run=2**200),
    "no image": label(uuid="flag-one", image=None),
    "an unknown image": label(uuid="flag-one", image=77),
    "an unknown class": label(uuid="flag-one", **{"class": 77}),
    "true for an image": label(uuid="flag-one", image=True),
    "a state of 0.6": label(uuid="flag-one", state=0.6),
    "a state of true": label(uuid="flag-one", state=True),
    "a score of 5": label(uuid="flag-one", score=5),
    "a score of -3": label(uuid="flag-one", score=-3),
    "a score of 1e400": b'{"uuid": "flag-one", "action": "label", "image": 1, "class": 1, "state": 1, "score": 1e400}',
    "a score that is NaN": b'{"uuid": "flag-one", "action": "label", "image": 1, "class": 1, "state": 1, "score": NaN}',
    "an import": label(uuid="flag-one", source="import"),
    "a rumour": label(uuid="flag-one", source="rumour"),
    "an audit of a cell that was not drawn": label(uuid="flag-one", source="audit"),
    "another name": label(uuid="flag-one", annotator="Bob"),
    "another name with a made-up pass": label(uuid="flag-one", annotator="Bob", **{"pass": "Bob.Bob"}),
    "a note that is too long": {"uuid": "flag-one", "action": "flag", "image": 1, "note": "x" * 2001},
    "no action": {"uuid": "flag-one"},
    "an unknown action": label(uuid="flag-one", action="wave"),
    "a grid without cells": {"uuid": "flag-one", "action": "batch", "cells": []},
    "a grid of too many cells": {"uuid": "flag-one", "action": "batch", "cells": [[1, 1, 1, None]] * 10_001},
    "a grid of odd cells": {"uuid": "flag-one", "action": "batch", "cells": [[1, 1, 1]]},
    "a nested note": {"uuid": "flag-one", "action": "flag", "image": 1, "note": [[[[]]]]},
}


@pytest.mark.parametrize("what", mark_slow_after(10, UNSTORABLE))
def test_decision_that_cannot_be_stored_is_refused_and_the_others_are_saved(app, db, what):
    first, last = label(), label(image=2)
    status, answer = app.post("/api/decisions", text_of(first, UNSTORABLE[what], last))
    assert status == 200
    assert answer["saved"] == [first["uuid"], last["uuid"]]
    assert list(answer["refused"]) == ["flag-one"] and answer["refused"]["flag-one"]
    assert db.value("SELECT count(*) FROM decision") == 2


@pytest.mark.parametrize("name", [None, 5, "short", "of-a-grid:1", "with a blank", "x" * 101, "new\nlines"])
def test_invalid_decision_uuid_is_refused(app, db, name):
    status, answer = app.post("/api/decisions", {"decisions": [label(uuid=name), good := label()]})
    assert (status, answer["saved"]) == (200, [good["uuid"]])
    assert list(answer["refused"]) == [name if isinstance(name, str) else "#1"]


@pytest.mark.parametrize("time", [b"-5", b"1e400", b'"soon"', b"[[]]", b"4611686018427387904", b"null", b"86400001"])
def test_decision_with_an_invalid_duration_is_saved_without_it(app, db, time):
    entry = json.dumps(label()).encode().replace(b'"milliseconds": 800', b'"milliseconds": ' + time)
    status, answer = app.post("/api/decisions", text_of(entry))
    assert status == 200 and answer["refused"] == {}
    assert db.tuples("SELECT milliseconds FROM decision") == [(None,)]


def test_queued_decision_with_an_expired_token_is_saved_for_the_annotator_of_the_token(app, db, monkeypatch):
    monkeypatch.setattr("annotator.ui.access.tokens.time.time", lambda: 60.0 * DAY_SECONDS)
    long_ago = served_project.tokens().mint("Bob")
    monkeypatch.undo()
    assert served_project.tokens().read_annotator(long_ago) is None, "nothing can be asked with it any more"
    waited, own = label(annotator="Bob", **{"pass": long_ago}), label(image=2, annotator="Ann")
    claimed = label(image=3, annotator="Cleo", **{"pass": long_ago})
    _, answer = app.post("/api/decisions", {"decisions": [waited, own, claimed]})
    assert (
        answer["saved"] == [waited["uuid"], own["uuid"]] and "switch to that user" in answer["refused"][claimed["uuid"]]
    )
    assert db.tuples("SELECT annotator FROM decision ORDER BY id") == [("Bob",), ("Ann",)]


def test_decision_with_a_token_of_another_project_is_refused(app, db, tmp_path):
    elsewhere = Tokens(tmp_path / "secret").mint("Bob")
    _, answer = app.post("/api/decisions", {"decisions": [one := label(annotator="Bob", **{"pass": elsewhere})]})
    assert list(answer["refused"]) == [one["uuid"]]


def test_member_token_is_refused_in_a_project_without_members(app, db):
    given = Tokens(db.paths.secret, of_members=True).mint("Bob")
    _, answer = app.post("/api/decisions", {"decisions": [one := label(annotator="Bob", **{"pass": given})]})
    assert list(answer["refused"]) == [one["uuid"]]
    assert app.post("/api/decisions", {"decisions": []}, token=given)[0] == 401


def test_answer_to_a_label_sampled_for_the_audit_is_saved_from_a_grid(app, db):
    audit_sampling.draw_audit(db, 3)
    cell = audit_sampling.load_open_cells(db)[0]
    grid = {
        "uuid": "grid-one",
        "action": "batch",
        "source": "audit",
        "cells": [[cell.image_id, cell.class_id, 1, None]],
    }
    assert app.post("/api/decisions", {"decisions": [grid]})[1]["saved"] == ["grid-one"]


def test_request_with_500_decisions_saves_the_valid_ones_and_501_are_refused(app, db):
    good = [label(image=number % 24 + 1) for number in range(499)]
    status, answer = app.post("/api/decisions", text_of(*good, UNSTORABLE["half a letter"]))
    assert status == 200 and len(answer["saved"]) == 499 and list(answer["refused"]) == ["flag-one"]
    status, answer = app.post("/api/decisions", text_of(*good, UNSTORABLE["half a letter"], label()))
    assert status == 400 and answer["error"]


DEEP = b"[" * 100_000 + b"]" * 100_000
PAGE = {"holder": "page-one", "have": [], "want": 2}
MALFORMED = [
    ("POST", "/api/decisions", b""),
    ("POST", "/api/decisions", b"[]"),
    ("POST", "/api/decisions", b'{"decisions": {}}'),
    ("POST", "/api/decisions", b'{"decisions": [%s]}' % DEEP),
    ("POST", "/api/decisions", b'{"decisions": [1], "x": ' + b"9" * 5000 + b"e"),
    ("POST", "/api/recent", b"nothing"),
    ("POST", "/api/classes", b"\xff"),
    ("POST", "/api/items", b'{"images": [%d]}' % 2**63),
    ("POST", "/api/items", b'{"images": [1e400]}'),
    ("POST", "/api/items", b'{"images": [true]}'),
    ("POST", "/api/items", DEEP),
    ("POST", "/api/examples", b'{"class": -1}'),
    ("POST", "/api/examples", b'{"class": "1"}'),
    ("POST", "/api/work", json.dumps(PAGE | {"mode": "sleep"}).encode()),
    ("POST", "/api/work", json.dumps(PAGE | {"mode": "annotate", "want": 2**70}).encode()),
    ("POST", "/api/work", json.dumps(PAGE | {"mode": "annotate", "holder": "\ud800"}).encode()),
    ("POST", "/api/work", json.dumps(PAGE | {"mode": "review", "filter": {"from": 2}}).encode()),
    ("POST", "/api/work", json.dumps(PAGE | {"mode": "review", "filter": {"kind": "odd"}}).encode()),
    ("POST", "/api/grid", json.dumps(PAGE | {"size": 1e300}).encode()),
    ("POST", "/api/grid", json.dumps(PAGE | {"size": 12, "class": 2**64}).encode()),
    ("POST", "/api/grid", json.dumps(PAGE | {"size": 12, "have": [[1, 2, 3]]}).encode()),
    ("POST", "/api/autopilot", json.dumps(PAGE | {"have": [["a", "b"]]}).encode()),
    ("POST", "/api/rule_out", b'{"class": "deer"}'),
    ("POST", "/api/rule_out", b'{"class": 0}'),
    ("POST", "/api/rule_out", b"{}"),
    ("POST", "/api/rule_out/undo", b'{"batch": "a b"}'),
    ("POST", "/api/rule_out/undo", b'{"batch": 1}'),
    ("POST", "/api/map/select", b'{"polygon": [[0, 0], [1, 1]]}'),
    ("POST", "/api/map/select", b'{"polygon": [[0, 0], [1, 1], [1, 1e400]]}'),
    ("POST", "/api/gallery", b'{"start": 0}'),
    ("POST", "/api/gallery", b'{"start": -1, "count": 10}'),
    ("POST", "/api/gallery", b'{"start": 0, "count": 10, "filter": {"has": ["fox"]}}'),
    ("POST", "/api/gallery", b'{"start": 0, "count": 10, "filter": {"complete": "yes"}}'),
    ("POST", "/api/gallery", b'{"start": 0, "count": 10, "filter": {"from": "2026-02-31"}}'),
    ("POST", "/api/gallery", b'{"start": 0, "count": 10, "filter": {"source": "rumour"}}'),
    ("POST", "/api/gallery", b'{"start": 0, "count": 10, "sort": "beauty"}'),
    ("POST", "/api/gallery/place", b'{"image": 0}'),
    ("POST", "/api/gallery/ids", b'{"first": 0, "last": 1e400}'),
    ("POST", "/api/find", b'{"text": 5, "count": 5}'),
    ("GET", "/api/map/colors?by=mood", b""),
    ("GET", f"/api/map/colors?by=class&class={2**63}", b""),
    ("GET", f"/api/image/{2**63}", b""),
    ("GET", f"/api/image/{'9' * 5000}", b""),
    ("GET", "/api/image/one", b""),
    ("GET", f"/api/thumb/{2**64}", b""),
    ("GET", "/api/thumb/-1", b""),
    ("GET", f"/api/heatmap/1/{2**63}/1", b""),
    ("GET", "/api/heatmap/1/1/0", b""),
]


@pytest.mark.parametrize(
    "request_", mark_slow_after(16, MALFORMED, unpack=False), ids=lambda one: f"{one[0]} {one[1][:24]} {one[2][-24:]!r}"
)
def test_malformed_request_returns_400_with_a_reason_and_logs_nothing(app, db, request_, caplog):
    with caplog.at_level(logging.WARNING):
        status, body = app.send(*request_)
    assert status == 400, body
    assert json.loads(body)["error"].startswith("The request is not as it should be: ")
    assert not caplog.records
    assert decisions.get_newest_decision_id(db) == 0


def test_unsupported_http_method_returns_405(app: Asked):
    assert app.send("DELETE", "/api/decisions")[0] == app.send("GET", "/api/decisions")[0] == 405
    assert app.send("POST", "/api/image/1")[0] == 405


def test_project_without_images_answers_work_and_autopilot_requests(tmp_path):
    Database(tmp_path / "bare", create=True)
    with asked(tmp_path / "bare") as app:
        assert app.post("/api/work", PAGE | {"mode": "annotate"})[0] == 200
        assert app.post("/api/autopilot", PAGE)[0] == 200

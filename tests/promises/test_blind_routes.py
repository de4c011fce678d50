"""Every route, asked by people who may be asked blind, answers the same whatever others have said of hidden images.

What depends on nothing hidden cannot tell it: all answers are compared, before and after others have answered.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from harness import projects
from harness.blind_answers import CLASSES, name_of, say, waiting
from harness.published_runs import publish
from harness.short_forms import mark_slow_after
from starlette.applications import Starlette
from starlette.testclient import TestClient

from annotator.records import SOURCES, Batch, Decision
from annotator.snapshot import image_map
from annotator.store.database import authorization
from annotator.store.database.database import Database
from annotator.store.events import project_events
from annotator.store.images import near_duplicate_groups, selections
from annotator.store.labels import decisions, image_overlap
from annotator.store.networks import configuration, search_examples
from annotator.store.networks.search_examples import ExampleAnswer
from annotator.store.people import blindness, leases, members, reference_answers
from annotator.ui.access import served_project, sessions
from annotator.ui.access.middleware import MEMBER_SCOPE_KEY
from annotator.ui.access.serving_modes import Access
from annotator.ui.route_table import load_routes
from spmll.query_strategies import STRATEGIES

OTHER, KNOWER = "Zenobia", "Olga"  # who answers blind what Ben and Gus are still to answer, and who knows answers
KNOWN = (1, 2)
IMAGES = range(1, 25)
APART = {  # and why no answer of theirs depends on what is hidden
    "/api/decisions": "it is asked below",
    "/api/classes/add": "it is asked below",
    "/api/speed_test/time": "it stores a time",
    "/api/answering": "it stores how this person wants to be asked",
    "/api/download/{name}": "reviewers only",
    "/api/autopilot/audit": "reviewers only",
    "/api/export": "reviewers only",
    "/api/export/state": "reviewers only",
    "/api/rule_out": "reviewers only",
    "/api/rule_out/undo": "reviewers only",
    "/api/upload": "owners only",
    "/api/like": "it stores an example",
    "/api/like/picture": "it stores an example",
    "/api/predictions": "programs only",
    "/api/script/{token}/{name:path}": "files of the program",
    "/metrics": "programs only",
    "/ready": "it counts nothing",
}


@dataclass
class Team:
    """A project that is served to its members, in this process; requests are asked as who `as_` says."""

    db: Database
    client: TestClient
    as_: str = "Ben"
    selection: str = ""
    example: str = ""
    paths: set[str] = field(default_factory=set)

    def ask(self, path: str, body: object = None) -> tuple[int, str]:
        self.paths.add(path.partition("?")[0])
        headers = {"x-annotator-token": served_project.tokens().mint(self.as_)}
        method = "GET" if body is None else "POST"
        answer = self.client.request(method, path, json=body, headers=headers)
        return answer.status_code, answer.content.decode("latin-1")

    def json(self, path: str, body: object) -> dict[str, Any]:
        status, text = self.ask(path, body)
        assert status == 200, text
        return json.loads(text)


@pytest.fixture
def team(db) -> Iterator[Team]:
    for name, role in (("Ben", "annotator"), ("Gus", "guest"), ("Rea", "reviewer"), ("Owen", "owner")):
        members.add(db, name, role, "test")
    chance = np.random.default_rng(3).random((24, 3))
    for image_id in (*KNOWN, 3, 4):
        say(db, image_id, KNOWER, (image_id % 3 + 1,), "suggestion")
    publish(db, chance, decisions.get_newest_decision_id(db))
    places = np.random.default_rng(4).random((24, 2)).astype(np.float32)
    image_map.save_map(db.paths.map(configuration.get_backbone(db)), np.arange(1, 25), places)
    near_duplicate_groups.save_groups(db, np.arange(1, 25), np.ones(24, np.int64))
    with db.writing() as sql:
        sql.execute("UPDATE image SET captured_at = 1.7e9 + 10 * id + 100 * ((id - 1) / 3), camera = 'Trap'")
        sql.execute("INSERT INTO attribute SELECT id, 'animals', id % 4, NULL FROM image")
    project_events.find_and_save(db)
    reference_answers.choose_images(db, [name_of(db, image_id) for image_id in KNOWN], 0.5)
    image_overlap.set_overlap(db, 3, 0.6)
    projects.save_features(db, np.random.default_rng(5).random((24, 16)).astype(np.float16))
    example = search_examples.request_words(db, "a fox")
    found = ExampleAnswer(configuration.get_backbone(db), None, np.arange(1, 25), chance[:, 0].astype(np.float32))
    search_examples.save_answer(db, search_examples.load_waiting(db)[0], found)
    served = list(served_project._open_project)
    served_project.open_project(db.paths.project)
    sessions_ = served_project.configure_access(Access("invitation", "127.0.0.1", 1, "http://127.0.0.1:1"))
    inner = Starlette(routes=load_routes())

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            sessions_.refresh(force=True)
            scope[MEMBER_SCOPE_KEY] = next(member for member in members.load_members(db) if member.name == team_.as_)
            sessions.set_asking_member(scope[MEMBER_SCOPE_KEY].id)
        await inner(scope, receive, send)

    team_ = Team(db, TestClient(app), example=example)
    yield team_
    served_project._open_project[:], served_project._configured_access[:] = served, []
    authorization._member_sources.clear()


def everything(team: Team) -> dict[str, tuple[int, str]]:
    """What every route answers to requests of every kind, without what is new each time."""
    if not team.selection:
        square = [[0, 0], [1, 0], [1, 1], [0, 1]]
        team.selection = team.json("/api/map/select", {"polygon": square})["selection"]
    answers: dict[str, tuple[int, str]] = {}

    def ask(path: str, body: Any = None) -> None:
        status, text = team.ask(path, body)
        if text.startswith("{"):
            text = json.dumps(_same_each_time(json.loads(text)), sort_keys=True)
        for new in re.findall(r'"selection": "(\w+)"', text):  # its images, as its name is another one each time
            text = text.replace(new, str(selections.load(team.db, new).tolist()))
        answers[f"{path} {json.dumps(body)}"] = status, text

    page = {"holder": f"page of {team.as_}", "have": [], "want": 24}
    for order in (*STRATEGIES, "incomplete", "name", "time"):
        ask("/api/work", page | {"mode": "annotate", "order": order})
    ask("/api/work", page | {"mode": "annotate", "want": 0})
    for kind in ("missing", "likely_mistakes"):
        for by in ("", OTHER, KNOWER):
            ask("/api/work", page | {"mode": "review", "filter": {"kind": kind, "from": 0, "by": by}})
            ask("/api/work", page | {"mode": "review", "want": 0})
    for class_id in (*CLASSES, None):
        for selection in ("", team.selection):
            asked = {"class": class_id, "size": 24, "want": 2, "selection": selection}
            ask("/api/grid", page | asked)
            ask("/api/grid", page | asked | {"want": 0})
    for number in range(6):
        ask("/api/autopilot", page | {"want": 4, "passed": [[99, other] for other in range(number)]})
        ask("/api/autopilot", page | {"want": 0})
    ask("/api/items", {"images": [*IMAGES]})
    for image_id in IMAGES:
        ask("/api/twins", {"image": image_id})
        ask("/api/event", {"image": image_id})
    ask("/api/classes", {})
    ask("/api/recent", {})
    ask("/api/speed_test", {})
    ask("/api/like/state", {"example": team.example})
    ask("/api/find", {"text": "", "count": 9})
    ask("/api/find", {"text": "0", "count": 9})
    for class_id in CLASSES:
        ask("/api/examples", {"class": class_id})
        ask(f"/api/map/colors?by=class&class={class_id}")
        ask(f"/api/map/colors?by=probability&class={class_id}")
    ask("/api/map")
    ask("/api/map/colors?by=stage")
    for fact in ("place", "camera", "hour", "column:animals"):
        ask(f"/api/map/colors?by=fact&fact={fact}")
    lists: list[dict[str, Any]] = [
        {},
        {"complete": True},
        {"complete": False},
        {"flagged": True},
        {"from": "2020-01-01"},
    ]
    lists += [{key: [class_id]} for key in ("has", "lacks", "open") for class_id in CLASSES]
    lists += [{"source": source} for source in SOURCES] + [{"by": who} for who in (OTHER, KNOWER, "Ben")]
    lists += [{"hour": [0, 23]}, {"captured": ["2020-01-01", None]}, {"camera": "Trap"}, {"place": "deep"}]
    lists += [{"facts": [["animals", "1..3"]]}]
    sorts = ({"sort": "name"}, {"sort": "decided"}, {"sort": "labels"}, {"sort": "probability", "class": 2})
    sorts += ({"sort": "place"}, {"sort": "hour"}, {"sort": "column", "column": "animals"})
    for number, only in enumerate(lists):
        for fact in ("place", "camera", "hour", "captured", "column:animals"):
            ask("/api/gallery/counts", {"filter": only, "fact": fact})
        for sort in sorts if number < 2 else sorts[number % len(sorts) :][:1]:
            ask("/api/gallery", {"filter": only, "start": 0, "count": 24} | sort)
            ask("/api/gallery/place", {"filter": only, "image": 7} | sort)
            ask("/api/gallery/ids", {"filter": only, "first": 0, "last": 23} | sort)
    for more in ({"example": team.example}, {"like": [5], "filter": {"open": [1]}}):
        ask("/api/gallery/grid", {"sort": "like"} | more)
    for sort in ({"example": team.example}, {"like": [5]}):
        ask("/api/gallery", {"sort": "like", "start": 0, "count": 24} | sort)
        ask("/api/gallery/place", {"sort": "like", "image": 7} | sort)
        ask("/api/gallery/ids", {"sort": "like", "first": 0, "last": 23} | sort)
    for image_id in IMAGES:
        ask("/api/history", {"image": image_id})
        for by in ("name", "time"):
            ask("/api/neighbours", {"image": image_id, "by": by})
        ask(f"/api/image/{image_id}")
        ask(f"/api/thumb/{image_id}")
        if image_id in hidden(team):
            ask(f"/api/heatmap/1/{image_id}/1")
    return answers


SINCE = re.compile(r" (\\u00b7|·) \d+ answers? not yet learned")
NEW = re.compile(r"^([a-z])\d+(-\d+)*-\d+$")


def _same_each_time(answer: Any) -> Any:
    """An answer without the names of actions, without versions of listings, and without which of the blind images
    Autopilot asks about, which is chance."""
    if isinstance(answer, list):
        return [_same_each_time(part) for part in answer]
    if not isinstance(answer, dict):
        return answer
    if answer.get("kind") == "reading":
        return answer | {"id": "", "item": dict.fromkeys(answer["item"])}
    kept = {key: _same_each_time(value) for key, value in answer.items() if key not in ("version", "changed")}
    return kept | ({"id": ""} if NEW.match(str(answer.get("id", ""))) else {})


def hidden(team: Team) -> set[int]:
    return blindness.find_hidden_images(team.db, team.as_, [*IMAGES])


def as_program(team: Team, act: Callable[[], object]) -> None:
    """Do something as the program itself, in a thread that acts for nobody."""
    sources = list(authorization._member_sources)
    authorization._member_sources.clear()
    act()
    authorization._member_sources[:] = sources


def differences(before: dict[str, tuple[int, str]], after: dict[str, tuple[int, str]]) -> list[str]:
    return [f"{what}\n  {before[what]}\n  {after[what]}"[:1500] for what in before if before[what] != after[what]]


def answer_blind(team: Team) -> None:
    db = team.db
    for image_id in sorted(waiting(db)):
        say(db, image_id, OTHER, (image_id % 3 + 1,))
        for kind in ("flag", "comment"):
            note = Decision(f"{kind} {image_id}", kind, OTHER, "click", image_id, note=f"{OTHER} says so")
            assert not decisions.save(db, [note]).refused


def differ(team: Team) -> None:
    for image_id in sorted(waiting(team.db)):
        say(team.db, image_id, "Yolanda", (3,))
        leases.lease_overlap_image(team.db, "a page of Yolanda", "Yolanda", image_id)
    assert team.db.value("SELECT count(*) FROM contradiction")
    leases.renew_images(team.db, "a page of Yolanda", "Yolanda", ())


def correct(team: Team) -> None:
    """Turn round what is known of the images with known answers."""
    for image_id in KNOWN:
        rows = team.db.tuples("SELECT class_id, state FROM label WHERE image_id = ?", [image_id])
        cells = [(image_id, class_id, -state, None) for class_id, state in rows]
        assert not decisions.save(team.db, [Batch(f"turned {image_id}", KNOWER, "grid", cells)]).refused


@pytest.mark.parametrize("who", mark_slow_after(1, ["Ben", "Gus"]))
@pytest.mark.parametrize("act", mark_slow_after(1, [answer_blind, differ, correct]))
def test_no_route_reveals_answers_of_others_for_images_awaiting_a_blind_answer(team, who, act):
    team.as_ = who
    if act is differ:
        as_program(team, lambda: answer_blind(team))
    assert hidden(team) == waiting(team.db) | set(KNOWN)
    before = everything(team)
    if act is answer_blind:
        assert differences(before, everything(team)) == [], "each is the same when nothing happens"
    as_program(team, lambda: act(team))
    assert hidden(team) == waiting(team.db) | set(KNOWN)
    after = everything(team)
    if act is correct:  # that something was decided is no secret
        before, after = (
            {what: (status, SINCE.sub("", text)) for what, (status, text) in of.items()} for of in (before, after)
        )
    assert differences(before, after) == []
    said = [what for what, (_, text) in after.items() if OTHER in text or "Yolanda" in text]
    assert said == [], "nobody is told who has answered, flagged or commented"


def test_map_shows_only_file_based_fields_of_images_awaiting_a_blind_answer(team):
    place = {image: number for number, image in enumerate(IMAGES)}
    for fact, is_shown in (("column:animals", False), ("place", False), ("camera", True), ("hour", True)):
        status, text = team.ask(f"/api/map/colors?by=fact&fact={fact}")
        values = text.encode("latin-1")[: len(IMAGES)]
        seen = {image for image in hidden(team) if values[place[image]] != 255}
        assert status == 200 and seen == (hidden(team) if is_shown else set()), fact
        assert len({*values}) > 1 or fact == "camera"
    team.as_ = "Rea"
    assert 255 not in team.ask("/api/map/colors?by=fact&fact=column:animals")[1].encode("latin-1")[: len(IMAGES)]


def test_check_of_blind_answers_covers_every_http_route(team):
    everything(team)
    numbered = {re.sub(r"/\d+", "/{}", path) for path in team.paths}
    known = {re.sub(r"/\{\w+_id\}", "/{}", route.path) for route in load_routes()} - APART.keys()
    assert known == numbered


def test_grid_of_a_map_selection_excludes_images_awaiting_a_blind_answer(team):
    selection = team.json("/api/map/select", {"polygon": [[0, 0], [1, 0], [1, 1], [0, 1]]})["selection"]
    asked = {"holder": "page", "have": [], "want": 1, "size": 24, "class": 2, "selection": selection}
    tiles = [tile for grid in team.json("/api/grid", asked)["items"] for tile in grid["tiles"]]
    assert {tile["id"] for tile in tiles} == set(IMAGES) - hidden(team) and hidden(team) >= set(KNOWN)
    assert {tile["by"] for tile in tiles} == {None, KNOWER}, "of others that are answered it says who has"


def test_autopilot_offers_reference_and_overlap_images_indistinguishably(team):
    shapes: dict[bool, set[str]] = {True: set(), False: set()}
    for number in range(40):
        asked = {"holder": f"page {number}", "have": [], "want": 1, "passed": [[99, other] for other in range(number)]}
        for action in team.json("/api/autopilot", asked)["items"]:
            if action["kind"] == "reading":
                image = action["item"]["id"]
                alike = action | {
                    "id": action["id"].split("-")[0].replace(str(image), ""),
                    "item": sorted(action["item"]),
                }
                shapes[image in KNOWN].add(json.dumps(alike))
        team.ask("/api/autopilot", asked | {"want": 0, "passed": []})
    assert shapes[True] == shapes[False] and len(shapes[True]) == 1


def sent(uuid: str, image: int, source: str, **more: Any) -> dict[str, Any]:
    cells = [[image, class_id, 1, None] for class_id in CLASSES]
    return {"uuid": uuid, "action": "batch", "source": source, "cells": cells, "run": None} | more


def test_responses_do_not_distinguish_reference_images_from_overlap_images(team):
    """By claiming that an image has known answers, one could ask of each whether that is so."""
    waits, known, plain = min(waiting(team.db)), KNOWN[0], next(i for i in IMAGES if i not in hidden(team))

    said = {}
    for image in (waits, known):
        for source in ("reading", "known"):
            wrong = sent(f"wrong-{image}-{source}", image, source) | {"cells": [[image, 77, 1, None]]}
            said[image, source] = team.json("/api/decisions", {"decisions": [wrong]})["refused"]
    assert {reason for refused in said.values() for reason in refused.values()} == {
        "there is no class 77 in this project"
    }
    refused = team.json("/api/decisions", {"decisions": [sent("plain-one", plain, "known")]})["refused"]
    assert refused == {"plain-one": "it is not about one image that people answer blind"}
    for image, source in ((waits, "known"), (known, "reading")):
        uuid = f"right-{image}-batch"
        for _ in range(2):  # sent again, it changes nothing
            answer = team.json("/api/decisions", {"decisions": [sent(uuid, image, source)]})
            assert answer["saved"] == [uuid] and not answer["refused"]
        events = team.json("/api/history", {"image": image})["decisions"]
        assert {event["source"] for event in events if event["annotator"] == "Ben"} == {"reading"}
    assert {one["source"] for one in team.json("/api/recent", {})["decisions"]} == {"reading"}
    stored = dict(team.db.tuples("SELECT image_id, source FROM decision WHERE annotator = 'Ben'"))
    assert stored == {waits: "reading", known: "known"}
    assert [one.annotator for one in reference_answers.load_results(team.db)] == ["Ben"]
    team.as_ = "Rea"
    events = team.json("/api/history", {"image": known})["decisions"]
    assert {event["source"] for event in events if event["annotator"] == "Ben"} == {"known"}, "reviewers are told"


def test_who_has_an_image_open_is_hidden_from_annotators_awaiting_its_blind_answer(team):
    image, plain = min(waiting(team.db)), next(i for i in IMAGES if i not in hidden(team))
    as_program(team, lambda: leases.lease_overlap_image(team.db, "page", OTHER, image))
    as_program(team, lambda: leases.lease_overlap_image(team.db, "page", OTHER, plain))
    items = {item["id"]: item["with"] for item in team.json("/api/items", {"images": [image, plain]})["items"]}
    assert items == {image: "", plain: OTHER}
    team.as_ = "Rea"
    items = {item["id"]: item["with"] for item in team.json("/api/items", {"images": [image, plain]})["items"]}
    assert items == {image: OTHER, plain: OTHER}


def test_labels_of_others_stay_visible_after_undo_of_a_blind_answer(team):
    as_program(team, lambda: answer_blind(team))
    image = min(waiting(team.db))
    assert OTHER not in team.ask("/api/items", {"images": [image]})[1]
    uuid = "thrown-away"
    assert team.json("/api/decisions", {"decisions": [sent(uuid, image, "reading")]})["saved"]
    undo = {"uuid": "undo-of-it", "action": "undo", "undoes": f"{uuid}:0", "source": "reading"}
    assert team.json("/api/decisions", {"decisions": [undo]})["saved"]
    assert OTHER in team.ask("/api/items", {"images": [image]})[1]
    copied = {"decisions": [sent("copied-from-others", image, "reading")]}
    assert team.json("/api/decisions", copied)["saved"]
    people = [OTHER, "Ben"]
    said = np.concatenate([*image_overlap.iterate_first_answers(team.db, people)])
    assert set(said[said[:, 0] == image][:, 2].tolist()) == {0}, "what was copied is no blind answer"


def test_member_cannot_undo_an_answer_of_another_member_by_its_uuid(team):
    assert as_program(team, lambda: say(team.db, 9, OTHER, (1,), "suggestion")) is None
    (uuid,) = team.db.tuples("SELECT uuid FROM decision WHERE annotator = ? ORDER BY id LIMIT 1", [OTHER])[0]
    undo = {"uuid": "undo-of-hers", "action": "undo", "undoes": uuid, "source": "click"}
    assert f"is {OTHER}'s" in team.json("/api/decisions", {"decisions": [undo]})["refused"]["undo-of-hers"]
    team.as_ = "Rea"
    assert team.json("/api/decisions", {"decisions": [undo | {"uuid": "undo-by-rea"}]})["saved"] == ["undo-by-rea"]


def test_text_search_omits_images_awaiting_a_blind_answer_of_the_annotator(team: Team):
    asked = {"sort": "like", "example": team.example, "start": 0, "count": 24}
    found = {image["id"] for image in team.json("/api/gallery", asked)["images"]}
    assert hidden(team) and not found & hidden(team)
    team.as_ = "Rea"
    assert hidden(team) <= {image["id"] for image in team.json("/api/gallery", asked)["images"]}

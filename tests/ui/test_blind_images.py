"""What routes and pages show of an image that waits for somebody's blind answer."""

import json
from collections.abc import Iterator

import numpy as np
import pytest
from harness.member_requests import ask, browser_cookie, served_to_roles
from harness.person import open_page
from harness.served import Served
from playwright.sync_api import expect

from annotator.records import Batch, Decision
from annotator.snapshot import image_map
from annotator.store.classes import class_changes
from annotator.store.database.database import Database
from annotator.store.labels import decisions, image_overlap
from annotator.store.networks import configuration
from annotator.store.people import blindness

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Served]:
    with served_to_roles(tmp_path_factory.mktemp("blind")) as served:
        yield served


def shown_of(served: Served, name: str, image: int) -> dict[str, object]:
    """What somebody is shown of an image, by the routes that show any image; it is a neighbour of two others."""

    def answer(path: str, body: dict) -> dict:
        status, _, text = ask(served, name, path, body)
        assert status == 200, text
        return json.loads(text)

    listed = {"filter": {}, "sort": "name", "start": 0, "count": 9}
    beside = [answer("/api/neighbours", {"image": other, "by": "name"}) for other in range(1, 7)]
    items = answer("/api/items", {"images": [image]})["items"]
    items += [item for pair in beside for item in pair.values() if item and item["id"] == image]
    tiles = [tile for tile in answer("/api/gallery", listed)["images"] if tile["id"] == image]
    lists = [{"has": [1]}, {"complete": True}, {"source": "reading"}, {"by": "Ann"}, {"from": "2026-01-01"}]
    lists = [listed | {"filter": only} for only in lists] + [listed | {"sort": "decided"}]
    found = {image in [tile["id"] for tile in answer("/api/gallery", asked)["images"]] for asked in lists}
    placed = {answer("/api/gallery/place", asked | {"image": image})["place"] is not None for asked in lists}
    points = np.frombuffer(ask(served, name, "/api/map")[2].encode("latin-1"), "<u4", 6, 16).tolist()
    colors = [ask(served, name, f"/api/map/colors?by={by}")[2] for by in ("class&class=1", "stage")]
    return {
        "labels": sorted({len(one["labels"]) for one in (*items, *tiles)}),
        "flags": {one["flag"] for one in (*items, *tiles)},
        "comments": {one["comments"] for one in (*items, *tiles)},
        "events": {len(one["events"]) for one in items},
        "history": len(answer("/api/history", {"image": image})["decisions"]),
        "found": found | placed,
        "example": {image in answer("/api/examples", {"class": class_id})["images"] for class_id in (1, 2)},
        "on the map": [ord(of_points[points.index(image)]) for of_points in colors],
        "heat map": ask(served, name, f"/api/heatmap/9/{image}/1")[0] == 200,
    }


def label_event(db: Database, image: int) -> None:
    """Label the event that the image belongs to, as an import does."""
    with db.writing() as sql:
        sql.execute(
            "INSERT INTO import (uuid, source, sha256, format, annotator, imported_at, counts) "
            "VALUES ('u', 'lila.json', '', 'coco', 'Ann', 0, '{}')"
        )
        import_id = sql.execute("SELECT max(id) FROM import").fetchone()[0]
        sql.execute("INSERT INTO event_image VALUES (?, ?, 'burst')", [image, import_id])
        sql.execute("INSERT INTO event_label VALUES (?, 'burst', 1, 1, '', '', NULL)", [import_id])


@pytest.mark.slow
def test_answers_are_hidden_from_an_annotator_who_has_yet_to_answer_an_image_blind(shared):
    db, image, cells = Database(shared.project), 3, [(3, 1, 1, None), (3, 2, -1, None)]
    image_map.save_map(db.paths.map(configuration.get_backbone(db)), np.arange(1, 7), np.full((6, 2), 0.5))
    heatmap = db.paths.heatmap(9, image, 1)
    heatmap.parent.mkdir(parents=True)
    heatmap.write_bytes(b"drawn")
    image_overlap.set_overlap(db, 2, 1.0)
    class_changes.edit(db, "owner", {2: {"examples": [image]}})
    said = Batch("of-ann-1", "Ann", "reading", cells)
    notes = [Decision(f"ann-{kind}", kind, "Ann", "click", image, note="a heron?") for kind in ("flag", "comment")]
    assert not decisions.save(db, [said, *notes]).refused
    label_event(db, image)
    nothing = {"labels": [0], "flags": {None}, "comments": {0}, "history": 0, "events": {0}}
    nothing |= {"found": {False}, "example": {False}, "on the map": [0, 0], "heat map": False}
    everything = {"labels": [2], "flags": {"a heron?"}, "comments": {1}, "history": 4, "events": {1}}
    everything |= {"found": {True}, "example": {True}, "on the map": [1, 3], "heat map": True}
    assert shown_of(shared, "annotator", image) == nothing
    assert shown_of(shared, "reviewer", image) == everything
    assert not decisions.save(db, [Batch("of-ben-1", "annotator", "reading", cells)]).refused
    everything["history"] += 2
    assert shown_of(shared, "annotator", image) == everything
    assert not decisions.save(db, [Decision("of-ben-2", "undo", "annotator", "reading", undoes="of-ben-1:0")]).refused
    shown = shown_of(shared, "annotator", image)
    # It waits again, for somebody else, and is no example meanwhile but where it was chosen as one.
    assert shown == everything | {"example": {True, False}}, "what was shown is never hidden again"
    assert image not in image_overlap.find_next_images(db, "annotator", (), 9)
    image_overlap.set_overlap(db, 1, 0)
    assert shown_of(shared, "annotator", image) == everything, "nobody is asked any more"


@pytest.mark.slow
def test_gallery_states_why_an_image_awaiting_a_blind_answer_is_hidden(browser, shared):
    db, words = Database(shared.project), "Answers are hidden while this image waits for a blind answer"
    image_overlap.set_overlap(db, 2, 1.0)
    ((image, name),) = db.tuples("SELECT image_id, name FROM reading JOIN image ON id = image_id WHERE due > 0 LIMIT 1")
    assert not decisions.save(db, [Batch("of-ann-3", "Ann", "reading", [(image, 1, 1, None)])]).refused
    page = open_page(browser, shared, "x", "/gallery")
    page.context.add_cookies([browser_cookie(shared, "annotator")])
    page.goto(f"{shared.address}/gallery")
    tile = page.locator(f".thumb[data-image='{image}']")
    expect(tile).to_have_attribute("aria-label", f"{name}: {words}", timeout=60_000)
    tile.dblclick()
    expect(page.locator(".caption")).to_have_text(f"{name} · {words}", timeout=60_000)
    page.keyboard.press(";")
    expect(page.get_by_role("dialog").get_by_role("status")).to_have_text(f"{words}.")
    expect(page.locator(".history li")).to_have_count(0)
    assert page.troubles == []
    image_overlap.set_overlap(db, 1, 0)


@pytest.mark.slow
def test_certificate_page_is_hidden_from_annotators_with_pending_blind_answers(browser, shared):
    db = Database(shared.project)
    with db.writing() as sql:
        sql.execute("INSERT INTO attribute SELECT id, 'site', 'pond', NULL FROM image")
    image_overlap.set_overlap(db, 2, 1.0)
    assert blindness.has_hidden_images(db, "annotator")
    page = open_page(browser, shared, "x", "/gallery")
    by_a_fact = page.get_by_role("heading", name="By a fact of the images")
    page.context.add_cookies([browser_cookie(shared, "reviewer")])
    page.goto(f"{shared.address}/certificate")
    expect(by_a_fact).to_be_visible(timeout=60_000)
    page.context.add_cookies([browser_cookie(shared, "annotator")])
    page.goto(f"{shared.address}/certificate")
    expect(page.get_by_text("Hidden until you have given your blind answers.")).to_be_visible(timeout=60_000)
    expect(by_a_fact).to_have_count(0)
    image_overlap.set_overlap(db, 1, 0)

"""Blind answers and the Assignment page in a real Chromium."""

import pytest
from harness.autopilot_page import flown, fly, sure_of_the_fox
from harness.contexts import Contexts
from harness.person import decided, labels_of, on_screen, open_page, wait_until_fetched, wait_until_saved
from harness.served import Served, until
from playwright.sync_api import expect

from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions, disagreed_cells, image_overlap
from annotator.store.people import assignment, leases

pytestmark = pytest.mark.browser


@pytest.fixture
def app(tmp_path) -> Served:
    with flown(tmp_path, ["fox", "boar", "deer"], sure_of_the_fox(6)) as served:
        yield served


@pytest.mark.slow
def test_two_annotators_answer_one_image_without_seeing_each_others_labels(browser: Contexts, app: Served):
    db = Database(app.project)
    image_overlap.set_overlap(db, 2, 1.0)
    ann = fly(browser, app, "Ann")
    first = on_screen(ann)
    ann.keyboard.press("1")
    ann.keyboard.press("Enter")
    wait_until_saved(ann)
    assert labels_of(app, first) == {1: 1, 2: -1, 3: -1}
    assert {row["source"] for row in decided(app, "Ann")} == {"reading"}

    # her page lets go of it when it asks for more
    until(lambda: first not in dict(leases.load_leases_of_others(db, "")))
    ben = fly(browser, app, "Ben")
    assert on_screen(ben) == first, "what somebody has begun comes first"
    expect(ben.locator(".line")).to_contain_text("Mark everything on this image")
    expect(ben.get_by_role("button", name="History")).to_be_hidden()
    expect(ben.locator(".classes [aria-pressed=true]")).to_have_count(0)
    ben.keyboard.press(";")
    expect(ben.locator(".history li")).to_have_count(0)
    ben.keyboard.press("2")
    ben.keyboard.press("Enter")
    wait_until_saved(ben)
    assert labels_of(app, first) == {1: 1, 2: -1, 3: -1}, "the first answer stays the label"
    assert sorted(disagreed_cells.load_newest_cells(db, 9).tolist()) == [[first, 1], [first, 2]]
    ben.keyboard.press("Backspace")
    until(lambda: disagreed_cells.count(db) == 0)
    assert on_screen(ben) == first
    assert ann.troubles == ben.troubles == []


@pytest.mark.slow
def test_owner_sets_overlap_assignments_and_reference_images_on_the_assignment_page(browser: Contexts, app: Served):
    db = Database(app.project)
    page = open_page(browser, app, "Olga", "/assignment")
    page.get_by_role("spinbutton", name="People for each image").fill("2")
    page.get_by_role("spinbutton", name="Percent of the images").fill("100")
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_text("0 of 6 images answered by 2 people; 0 answers so far")).to_be_visible()
    assert image_overlap.load_overlap(db) == image_overlap.Overlap(2, 1.0)

    page.get_by_role("textbox", name="Person").fill("Ann")
    page.get_by_role("textbox", name="Folder").fill("nowhere")
    page.get_by_role("button", name="Give").click()
    expect(page.get_by_text("No image lies in a folder 'nowhere'")).to_be_visible()
    page.get_by_role("textbox", name="Person").fill("Ann")
    page.get_by_role("textbox", name="Folder").fill("")
    page.get_by_role("button", name="Give").click()
    expect(page.get_by_text("0 of 6 images complete", exact=True)).to_be_visible()
    assert [(share.annotator, share.images) for share in assignment.load_assignments(db)] == [("Ann", 6)]
    page.get_by_role("button", name="End").click()
    until(lambda: assignment.load_assignments(db) == [])

    names = page.get_by_role("textbox", name="Images")
    names.fill("000.jpg")
    page.get_by_role("button", name="Save").last.click()
    expect(page.get_by_text("1 of 1 images are not complete")).to_be_visible()
    assert not decisions.save(db, [Decision("d", "done", "Olga", "done", image_id=1)]).refused
    page.get_by_role("button", name="Save").last.click()
    expect(page.get_by_text("1 image chosen.")).to_be_visible()
    assert page.troubles == []
    wait_until_fetched(page)

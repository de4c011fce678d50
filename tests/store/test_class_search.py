"""Finding a class by typing, among five and among a thousand, and what its card says of it."""

from collections.abc import Iterator

import numpy as np
import pytest
from harness.person import (
    Scribe,
    decided,
    labels_of,
    looked_around,
    on_screen,
    open_page,
    served_photos,
    wait_for_another,
    wait_for_picture,
    wait_until_saved,
)
from harness.served import Served
from playwright.sync_api import expect

from annotator.store.classes import classes
from annotator.store.database import arrays
from annotator.store.database.database import Database
from annotator.store.runs import runs

pytestmark = pytest.mark.browser

LINES = ["fox\tred, with a white tip on its tail", "heron", "deer", "red fox", "owl"]


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Iterator[Served]:
    """An app with 300 tiny images and five classes; each test is somebody else."""
    with served_photos(tmp_path_factory.mktemp("many"), 300, LINES) as served:
        yield served


@pytest.fixture(scope="module")
def thousand(tmp_path_factory) -> Iterator[Served]:
    """An app with 1,000 classes and a run: on image n the likeliest class has the id 1000 - n, the next one 999 - n."""
    lines = [f"{kind} {number:03}" for kind in ("ant", "bee", "cat", "dog", "elk") for number in range(200)]
    with served_photos(tmp_path_factory.mktemp("thousand"), 60, lines) as served:
        db = Database(served.project)
        likely = np.full((60, 1000), 0.01, dtype=np.float16)
        for image_id in range(1, 61):
            likely[image_id - 1, 999 - image_id :: -1] = np.maximum(0.9 - 0.03 * np.arange(1000 - image_id), 0.02)
        likely[:, [599, 449]] = [0.5, 0.4]  # cat 199, cat 049
        facts = {"method": "gr", "parameters": {}, "backbone": "none", "class_ids": list(range(1, 1001)), "images": 60}
        run_id = runs.begin(db, **facts, last_decision_id=0, threshold=0.5)
        arrays.save_array(db.paths.run(run_id) / "image_ids.npy", np.arange(1, 61))
        arrays.save_array(db.paths.run(run_id) / "probabilities.npy", likely)
        runs.publish(db, run_id, epochs=1, seconds=0.1, loss=[0.5])
        yield served


def test_class_finder_matches_typed_characters_and_enter_labels_the_first_match(browser, many):
    page = open_page(browser, many, "Typist")
    wait_for_picture(page)
    image_id = on_screen(page)
    page.keyboard.press("/")
    page.keyboard.type("rfx")
    expect(page.locator(".option .name")).to_have_text(["red fox"])
    page.keyboard.press("Enter")
    wait_until_saved(page, 1)
    row = decided(many, "Typist")[0]
    assert (row["image_id"], row["class_id"]) == (image_id, 4)
    expect(page.locator(".found")).to_be_hidden()


@pytest.mark.slow
def test_labeling_with_the_class_finder_keeps_earlier_labels_of_the_image(browser, many):
    page = open_page(browser, many, "Searcher")
    scribe = Scribe(page)
    image_id = scribe.press("Shift+Digit1", "/", leaves=False)
    page.keyboard.type("own nothing fits")
    expect(page.locator(".found")).to_contain_text("No matching class")
    page.keyboard.press("Enter")
    expect(page.locator(".chips .chip")).to_have_text(["fox×"])
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("er")
    expect(page.locator(".found .option .name")).to_have_text(["heron", "deer", "red fox"][:2])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".chips .chip")).to_have_text(["fox×", "deer×"])
    page.keyboard.type("fo")
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Escape")
    expect(page.locator(".found")).to_be_hidden()
    assert on_screen(page) == image_id
    assert scribe.press("2") == image_id
    wait_until_saved(page, 4)
    assert labels_of(many, image_id) == {1: 1, 2: 1, 3: 1}


@pytest.mark.slow
def test_hovering_a_class_shows_its_card_and_escape_hides_it(browser, many):
    page = open_page(browser, many, "Reader")
    scribe = Scribe(page)
    image_id = scribe.press("1")
    wait_until_saved(page, 1)
    card = page.get_by_role("group", name="Class", exact=True)
    page.locator(".class[data-class='1']").hover()
    expect(card).to_contain_text("red, with a white tip on its tail")
    expect(card.locator("img").first).to_have_js_property("complete", True)
    assert f"/api/thumb/{image_id}?" in card.locator("img").first.get_attribute("src"), "the newest example comes first"
    card.hover()
    expect(card).to_be_visible()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()


@pytest.mark.slow
def test_class_card_stays_hidden_while_typing_in_the_finder(browser, many):
    page = open_page(browser, many, "Typist", clock=True)
    wait_for_picture(page)
    card = page.get_by_role("group", name="Class", exact=True)
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    page.clock.run_for(1000)
    expect(card).to_be_visible()
    page.keyboard.type("he")
    expect(card).to_be_hidden()
    page.keyboard.press("ArrowDown")
    page.locator(".found [role=option]").first.hover()
    page.clock.run_for(1000)
    expect(card).to_be_hidden()


@pytest.mark.slow
def test_question_mark_shows_the_card_of_the_class_that_enter_would_label(browser, many):
    page = open_page(browser, many, "Asker")
    wait_for_picture(page)
    page.keyboard.press("/")
    page.keyboard.type("he")
    page.keyboard.press("?")
    expect(page.get_by_role("group", name="Class", exact=True)).to_contain_text("heron")
    expect(page.get_by_label("Find a class", exact=True)).to_have_value("he")
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="Class", exact=True)).to_be_hidden()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


@pytest.mark.slow
def test_empty_class_finder_labels_nothing_on_enter(browser, many):
    page = open_page(browser, many, "Hasty")
    wait_for_picture(page)
    image_id = on_screen(page)
    field, found = page.get_by_label("Find a class", exact=True), page.locator(".found")
    chosen = page.locator(".option[aria-selected='true']")
    done = page.get_by_role("button", name="Nothing here: empty").locator("kbd")
    page.keyboard.press("/")
    expect(done).to_be_hidden()
    expect(chosen).to_have_count(0)
    page.keyboard.press("/")
    expect(field).to_have_value("")
    expect(page.locator(".finder .enter")).to_have_text("Enter closes the finder")
    page.keyboard.press("Enter")
    expect(found).to_be_hidden()
    expect(done).to_be_visible()
    expect(page.locator(".words")).to_contain_text("Nothing was labeled")
    page.keyboard.press("/")
    page.keyboard.type("fo")
    expect(page.locator(".finder .enter")).to_have_text("Enter labels fox")
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".chips .chip")).to_have_text(["fox×"])
    expect(found).to_be_visible()
    expect(chosen).to_have_count(0)
    page.keyboard.press("Enter")
    expect(found).to_be_hidden()
    assert on_screen(page) == image_id
    page.keyboard.press("/")
    page.keyboard.press("ArrowUp")
    expect(chosen).to_have_attribute("data-class", "1")  # answered already: the last row
    page.keyboard.press("Escape")
    looked_around(page)
    page.keyboard.press("Enter")
    wait_for_another(page, image_id)
    wait_until_saved(page, 2)
    assert [(row["action"], row["class_id"]) for row in decided(many, "Hasty")] == [("label", 1), ("done", None)]


@pytest.mark.slow
def test_class_finder_with_1000_classes_ranks_the_most_probable_first(browser, thousand):
    db = Database(thousand.project)
    names = {one.id: one.name for one in classes.load_active_classes(db)}
    page = open_page(browser, thousand, "Taxonomist")
    wait_for_picture(page)
    first = on_screen(page)
    best = 1000 - first
    expected = [names[class_id] for class_id in range(best, best - 8, -1)]
    expect(page.get_by_role("group", name="Likely on this image").locator(".name")).to_have_text(expected)
    page.keyboard.press("/")
    expect(page.locator(".option .name").first).to_have_text(names[best])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_for_another(page, first)
    second = on_screen(page)
    page.keyboard.press("/")
    page.keyboard.type("cat")
    # All cats begin with it; two of them are what the model thinks likelier.
    expect(page.locator(".option .name")).to_have_count(40)
    assert page.locator(".option .name").all_text_contents()[:3] == ["cat 199", "cat 049", "cat 000"]
    page.keyboard.type(" 04")
    expect(page.locator(".option .name").first).to_have_text("cat 049")
    page.keyboard.press("Enter")
    wait_for_another(page, second)
    wait_until_saved(page, 2)
    assert [row["class_id"] for row in decided(thousand, "Taxonomist")] == [best, 450]

"""A class is added where somebody looks for one that is missing: once, whoever types it, and only where allowed."""

import uuid
from collections.abc import Iterator

import pytest
from harness.asked import Asked, asked
from harness.person import (
    RENEW,
    Scribe,
    decided,
    labels_of,
    looked,
    on_screen,
    open_page,
    served_photos,
    wait_for_another,
    wait_for_picture,
    wait_until_fetched,
    wait_until_saved,
)
from harness.served import Served
from playwright.sync_api import Route, expect

from annotator.records import Decision
from annotator.store.classes import class_changes, classes
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.ui.shared import page_classes


@pytest.fixture
def app(project) -> Iterator[Asked]:
    with asked(project) as one:
        yield one


def names(db) -> list[str]:
    return [class_.name for class_ in classes.load_active_classes(db)]


def test_add_class_route_called_twice_with_one_name_creates_one_class(app, db):
    first, second = (app.post("/api/classes/add", {"name": name}) for name in ("rain coat", " rain  coat "))
    assert first == second and first[0] == 200
    assert first[1]["class"] == 4 and [one["name"] for one in first[1]["classes"]] == names(db)
    assert names(db) == ["fox", "heron", "deer", "rain coat"]


def test_add_class_route_warns_about_similar_names_and_reopened_images_before_adding(app, db):
    one = Decision(str(uuid.uuid4()), "done", "Ann", "done", image_id=1)
    assert not decisions.save(db, [one]).refused
    status, answer = app.post("/api/classes/add", {"name": "Fox"})
    assert (
        status == 200
        and "looks like 'fox'" in answer["surprises"][0]
        and "1 complete image becomes" in answer["surprises"][1]
    )
    assert names(db) == ["fox", "heron", "deer"]
    assert app.post("/api/classes/add", {"name": "Fox", "sure": True})[1]["class"] == 4


def test_add_class_route_refuses_invalid_names_and_adding_disabled_by_the_owner(app, db):
    for name, says in (("image", "first column"), ("", "blank"), ("a|b", "'|'")):
        status, answer = app.post("/api/classes/add", {"name": name})
        assert (status, says in answer["error"]) == (409, True), answer
    page_classes.set_adding_allowed(db, False)
    status, answer = app.post("/api/classes/add", {"name": "owl"})
    assert status == 409 and "Classes page" in answer["error"]
    assert names(db) == ["fox", "heron", "deer"]
    assert app.post("/api/classes/add", {"name": "fox"})[1]["class"] == 1, "a class that is there needs no adding"


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    with served_photos(tmp_path_factory.mktemp("added"), 30, ["fox", "heron", "deer"]) as served:
        yield served


@pytest.mark.browser
def test_class_added_in_the_class_finder_labels_the_image_and_appears_on_other_open_pages(browser, served):
    other = open_page(browser, served, "Ben", clock=True)
    wait_for_picture(other)
    page = open_page(browser, served, "Ann")
    wait_for_picture(page)
    image_id = on_screen(page)
    page.keyboard.press("/")
    page.keyboard.type("raincoat")
    expect(page.locator(".found")).to_contain_text("No matching class.")
    expect(page.locator(".option.add")).to_have_text("Add “raincoat” as a new class")
    page.keyboard.press("Enter")
    assert on_screen(page) == image_id, "a slip adds nothing"
    page.keyboard.press("ArrowDown")
    expect(page.locator(".option.add")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    wait_for_another(page, image_id)
    wait_until_saved(page, 1)
    assert labels_of(served, image_id) == {4: 1}
    assert names(Database(served.project)) == ["fox", "heron", "deer", "raincoat"]
    expect(page.locator(".class[data-class='4'] kbd")).to_have_text("4")
    page.keyboard.press("Backspace")
    wait_until_saved(page, 2)
    assert labels_of(served, image_id) == {}
    other.clock.fast_forward(RENEW)
    expect(other.locator(".class[data-class='4']")).to_have_text("raincoat4")
    shown = on_screen(other)
    other.keyboard.press("4")
    wait_until_saved(other, 1)
    assert [(row["image_id"], row["class_id"]) for row in decided(served, "Ben")] == [(shown, 4)]
    # A synonym of another person's making is found as soon as the page has heard of it.
    class_changes.edit(Database(served.project), "Cy", {4: {"name": "rain coat", "synonyms": ["raincoat"]}})
    other.clock.fast_forward(RENEW)
    expect(other.locator(".class[data-class='4']")).to_have_text("rain coat4")
    other.keyboard.press("/")
    other.keyboard.type("rainc")
    expect(other.locator(".option .name")).to_have_text(["raincoat (synonym of rain coat)"])
    expect(other.locator(".option.add")).to_have_text("Add “rainc” as a new class")
    other.keyboard.type("oat")
    expect(other.locator(".option.add")).to_have_count(0)
    assert page.troubles == [] and other.troubles == []


@pytest.mark.slow
@pytest.mark.browser
def test_class_finder_adds_names_with_commas_as_several_classes_or_one(browser, tmp_path):
    with served_photos(tmp_path, 12, ["fox"]) as served:
        page = open_page(browser, served, "Lister")
        wait_for_picture(page)
        image_id = on_screen(page)
        page.keyboard.press("/")
        page.keyboard.type("hare, fox")
        rows = page.locator(".option.add")
        expect(rows).to_have_text(["Add 2 classes: “hare” and “fox”", "Add one class named “hare, fox”"])
        page.keyboard.press("ArrowDown")
        expect(page.locator(".found .enter")).to_have_text("Enter adds the classes and labels the image")
        page.keyboard.press("Enter")
        wait_for_another(page, image_id)
        wait_until_saved(page, 2)
        assert labels_of(served, image_id) == {1: 1, 2: 1} and names(Database(served.project)) == ["fox", "hare"]
        second = on_screen(page)
        page.keyboard.press("/")
        page.keyboard.type("Owl, tawny")
        rows.nth(1).click()
        expect(page.locator(".found .surprise")).to_contain_text("1 complete image becomes incomplete")
        looked(page)
        rows.nth(1).click()
        wait_for_another(page, second)
        wait_until_saved(page, 3)
        assert labels_of(served, second) == {3: 1}
        assert names(Database(served.project)) == ["fox", "hare", "Owl, tawny"] and page.troubles == []


PRESS_ON = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".stage"));
  const find = (what) => host.shadowRoot.querySelector(what);
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  window.presses = [];
  let last = "";
  window.pressing = (async () => {
    while (!window.enough) {
      const image = find(".stage img")?.dataset.image;
      const buttons = [...host.shadowRoot.querySelectorAll(".classes [aria-keyshortcuts]")];
      const button = buttons[window.presses.length % buttons.length];
      const key = button.getAttribute("aria-keyshortcuts");
      if (image && key === last) last = "";  // where keys change places; the same one again would be a repeat
      else if (image) {
        last = key;
        window.presses.push([Number(image), Number(button.dataset.class), button.querySelector(".name").textContent]);
        const press = { key, code: `Digit${key}`, bubbles: true, composed: true };
        document.body.dispatchEvent(new KeyboardEvent("keydown", press));
        document.body.dispatchEvent(new KeyboardEvent("keyup", press));
      }
      await pause(image && last === "" ? 320 : 40);
    }
    return window.presses;
  })();
}"""
"""Keys of the classes on screen, one after the other, until told `enough`; for each the image and the class."""


@pytest.mark.slow
@pytest.mark.browser
def test_annotate_keys_label_the_shown_class_and_image_while_the_classes_change(browser, tmp_path):
    with served_photos(tmp_path, 600, ["fox", "heron", "deer"]) as served:
        db = Database(served.project)
        page = open_page(browser, served, "Ann")
        wait_for_picture(page)
        wait_until_fetched(page)
        page.evaluate(PRESS_ON)
        shown = page.locator(".classes .class")
        for change, then in (
            (lambda: classes.add_classes(db, [("owl", "")], "Owner"), ["fox1", "heron2", "deer3", "owl4"]),
            (
                lambda: class_changes.edit(db, "Owner", {1: {"name": "red fox"}}),
                ["red fox1", "heron2", "deer3", "owl4"],
            ),
            (lambda: class_changes.archive(db, "Owner", [2]), ["red fox1", "deer3", "owl4"]),
            (
                lambda: class_changes.edit(db, "Owner", {1: {"key": "3"}, 3: {"key": "1"}}),
                ["red fox3", "deer1", "owl4"],
            ),
            (lambda: class_changes.reorder(db, "Owner", [4, 3, 1]), ["owl4", "deer1", "red fox3"]),
        ):
            change()
            expect(shown).to_have_text(then)
        page.evaluate("() => { window.last = window.presses.length }")
        page.wait_for_function("() => window.presses.length > window.last + 6")
        presses = page.evaluate("() => { window.enough = true; return window.pressing }")
        wait_until_saved(page, len(presses))
        assert [[row["image_id"], row["class_id"]] for row in decided(served, "Ann")] == [one[:2] for one in presses]
        # What was a heron and nothing else is asked anew.
        answered = [image_id for image_id, class_id, _ in presses if class_id != 2]
        assert len(set(answered)) == len(answered), "no image comes twice"
        assert {name for _, _, name in presses} == {"fox", "red fox", "heron", "deer", "owl"}
        assert page.troubles == []


@pytest.mark.slow
@pytest.mark.browser
def test_annotate_does_not_show_an_image_again_that_was_answered_while_its_queue_reloads(browser, tmp_path):
    with served_photos(tmp_path, 100, ["fox", "heron"]) as served:
        page = open_page(browser, served, "Ann")
        scribe, held = Scribe(page), []
        wait_for_picture(page)
        wait_until_fetched(page)

        def hold(route: Route) -> None:
            """The server has chosen, and its answer is late."""
            if route.request.post_data_json["want"]:
                held.append((route, route.fetch()))
            else:
                route.continue_()

        page.route("**/api/work", hold)
        classes.add_classes(Database(served.project), [("owl", "")], "Owner")
        seen = [scribe.press("1")]
        expect(page.locator(".classes .class")).to_have_text(["fox1", "heron2", "owl3"])
        seen += [scribe.press("3") for _ in range(4)]
        wait_until_saved(page, 5)
        assert held, "the next images were asked for anew"
        for route, answer in held:
            route.fulfill(response=answer)
        page.unroute("**/api/work")
        wait_until_fetched(page)
        seen += [scribe.press("2") for _ in range(5)]
        wait_until_saved(page, 10)
        assert len(set(seen)) == 10
        assert [row["image_id"] for row in decided(served, "Ann")] == seen
        assert page.troubles == []

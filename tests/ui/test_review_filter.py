"""The filter of Review in a real Chromium: it has the keys only while somebody types into it; a key does one thing."""

from collections.abc import Callable, Iterator

import pytest
from harness.person import looked, on_screen, wait_for_another, wait_for_picture, wait_until_saved
from harness.review_page import answers, open_review, reviewed, selected, three_each
from harness.served import Served
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

CHOSEN = "() => JSON.parse(Object.entries(localStorage).find(([name]) => name.endsWith('review-filter'))?.[1] ?? '{}')"


@pytest.fixture(scope="module")
def some(tmp_path_factory) -> Iterator[Served]:
    with reviewed(tmp_path_factory.mktemp("filter"), three_each(60)) as served:
        yield served


@pytest.fixture
def opened(browser, some) -> Callable[[str], Page]:
    """Opens Review for somebody; what they hold is free again after the test, however it ends."""
    return lambda name: open_review(browser, some, name)


def chosen(page: Page) -> dict:
    return page.evaluate(CHOSEN)


def of_class(page: Page, class_id: int) -> None:
    expect(page.locator(".filter input[type=search]")).not_to_be_focused()
    page.wait_for_function(
        f"""() => {{
          const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".stage"));
          const shown = [...host.shadowRoot.querySelectorAll(".suggestion")].map((one) => one.dataset.class);
          return shown.length === 1 && shown[0] === "{class_id}";
        }}"""
    )
    looked(page)
    wait_for_picture(page)


def by_slash(page: Page) -> None:
    page.keyboard.press("f")
    page.keyboard.type("heron")
    page.keyboard.press("Enter")


def by_the_list(page: Page) -> None:
    """What Chromium does when a line of the list under the field is clicked: the value, then input and change."""
    page.locator(".filter input[type=search]").click()
    page.locator(".filter input[type=search]").evaluate(
        """(field) => {
          field.value = "heron";
          for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
        }"""
    )


@pytest.mark.slow
@pytest.mark.parametrize("choose", [by_slash, by_the_list])
def test_key_press_after_choosing_a_review_class_filter_answers_the_image(opened, some, choose):
    name = choose.__name__
    page = opened(name)
    choose(page)
    of_class(page, 2)
    about = selected(page)
    page.keyboard.press("n")
    wait_until_saved(page, 1)
    assert answers(some, name) == [[*about, -1]]


def by_person(page: Page) -> None:
    page.locator(".filter select").click()
    page.keyboard.press("Escape")  # the browser's own list
    page.locator(".filter select").select_option(index=0)
    page.locator(".filter select").dispatch_event("change")


def by_typed_share(page: Page) -> None:
    page.locator(".filter input[type=number]").first.fill("56")
    page.keyboard.press("Enter")


def by_the_arrows_of_a_share(page: Page) -> None:
    field = page.locator(".filter input[type=number]").first
    box = field.bounding_box()
    field.hover()
    page.mouse.click(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2 - 6)
    expect(field).to_have_value("51")


@pytest.mark.slow
@pytest.mark.parametrize("choose", [by_person, by_typed_share, by_the_arrows_of_a_share])
def test_key_press_after_changing_any_review_filter_field_answers_the_image(opened, some, choose):
    name = choose.__name__
    page = opened(name)
    choose(page)
    wait_for_picture(page)
    about = selected(page)
    page.keyboard.press("u")
    wait_until_saved(page, 1)
    assert answers(some, name) == [[*about, 0]]


@pytest.mark.slow
def test_arrow_keys_step_the_probability_filter_and_tab_moves_to_the_next_field(opened, some):
    page = opened("Steps")
    low, high = page.locator(".filter input[type=number]").all()
    low.focus()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    expect(low).to_have_value("53")
    expect(low).to_be_focused()
    page.keyboard.press("Tab")
    expect(high).to_be_focused()
    assert chosen(page)["from"] == 53


@pytest.mark.slow
def test_escape_leaves_the_filter_field_and_keeps_filter_and_image(opened, some):
    page = opened("Escape")
    by_slash(page)
    of_class(page, 2)
    image_id = on_screen(page)
    for typed in ("", "d", "nothing of the kind"):
        page.keyboard.press("f")
        page.keyboard.press("Backspace")  # what was there is selected
        page.keyboard.type(typed)
        for _ in range(2):
            page.keyboard.press("Escape")
            expect(page.locator(".filter input[type=search]")).to_have_value("heron")
            of_class(page, 2)
            assert chosen(page)["class"] == 2 and on_screen(page) == image_id
    page.keyboard.press("y")
    wait_until_saved(page, 1)
    assert answers(some, "Escape") == [[image_id, 2, 1]]


@pytest.mark.slow
def test_enter_in_an_emptied_class_field_clears_the_filter_and_answers_nothing(opened, some):
    page = opened("Empty")
    by_slash(page)
    of_class(page, 2)
    page.keyboard.press("f")
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect(page.locator(".filter").get_by_role("button", name="Clear filter")).to_be_hidden()
    wait_for_picture(page)
    assert chosen(page)["class"] is None
    assert answers(some, "Empty") == []


@pytest.mark.slow
def test_review_updates_the_shown_labels_of_the_image_after_answers_and_undo(opened, some):
    page = opened("Known")
    known = page.locator(".known")
    while page.locator(".suggestion").count() < 3 or "No labels yet" not in known.inner_text():
        image_id = on_screen(page)
        page.keyboard.press(" ")
        wait_for_another(page, image_id)
    name = page.locator(".suggestion.selected .name").inner_text()
    page.keyboard.press("y")
    expect(known).to_contain_text(name)
    expect(known).not_to_contain_text("No labels yet")
    page.keyboard.press("n")
    expect(known).to_contain_text("1 absent")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    expect(known).to_contain_text("No labels yet")


@pytest.mark.slow
def test_review_captions_a_heat_map_learned_from_too_few_images_as_early(opened):
    page = opened("Early")
    expect(page.locator(".caption")).to_contain_text("Early heat map: learned from 0 images with this class")
    page.keyboard.press("h")
    expect(page.locator(".caption")).not_to_contain_text("Early")

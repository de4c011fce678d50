"""A first visit: one hint at a time, beside what it is about; what was done or dismissed does not come back."""

from harness.person import open_page, served_photos, wait_for_picture
from playwright.sync_api import FloatRect, Locator, Page, expect

CLASSES, FINDER, UNDO = "one label is enough", "Press / and type", "Backspace undoes"


def hint(page: Page) -> Locator:
    return page.get_by_role("note")


def box(of: Locator) -> FloatRect:
    found = of.bounding_box()
    assert found is not None
    return found


def overlap(one: FloatRect, other: FloatRect) -> bool:
    apart = (one["x"] + one["width"] <= other["x"], other["x"] + other["width"] <= one["x"],
             one["y"] + one["height"] <= other["y"], other["y"] + other["height"] <= one["y"])  # fmt: skip
    return not any(apart)


def test_key_hint_disappears_after_use_or_dismissal_and_never_returns_for_the_annotator(browser, tmp_path):
    with served_photos(tmp_path, 12, ["fox", "heron"]) as served:
        page = open_page(browser, served, "Ann")
        wait_for_picture(page)
        expect(hint(page)).to_have_count(1)
        expect(hint(page)).to_contain_text(CLASSES)
        beside, classes = box(hint(page)), box(page.get_by_role("group", name="Classes"))
        assert beside["x"] + beside["width"] <= classes["x"], "it covers no key of a class"
        page.keyboard.press("1")
        expect(hint(page)).to_contain_text(FINDER)
        page.get_by_role("button", name="Dismiss hint").click()
        expect(hint(page)).to_contain_text(UNDO)
        page.reload()
        wait_for_picture(page)
        expect(hint(page)).to_contain_text(UNDO)
        page.keyboard.press("Backspace")
        expect(hint(page)).to_have_count(0)
        page.goto(served.address + "/grid")
        expect(hint(page)).to_contain_text("Tiles are marked already", timeout=60_000)
        page.goto(served.address + "/review")
        expect(page.locator(".empty")).to_contain_text("No suggestions yet", timeout=60_000)
        expect(hint(page)).to_have_count(0)  # there is nothing that they could be about


def test_phone_hint_is_shown_over_the_image_and_covers_no_control(browser, tmp_path):
    with served_photos(tmp_path, 12, ["fox", "heron"]) as served:
        page = open_page(browser, served, "Ben", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
        wait_for_picture(page)
        expect(hint(page)).to_contain_text("Tap a class")
        one, picture = box(hint(page)), box(page.locator(".stage"))
        assert picture["y"] <= one["y"] and one["y"] + one["height"] <= picture["y"] + picture["height"]
        for control in page.locator(".root :is(button, input, select):visible").all():
            if control.get_attribute("aria-label") != "Dismiss hint":
                assert not overlap(one, box(control)), control.text_content()
        page.locator(".class").first.tap()
        expect(hint(page)).to_contain_text("finds any class by its name")
        page.get_by_role("button", name="Dismiss hint").tap()
        page.get_by_role("button", name="Undo").tap()
        expect(hint(page)).to_have_count(0)
        page.goto(served.address + "/grid")
        page.locator(".hints").wait_for(state="attached", timeout=60_000)
        page.wait_for_load_state("networkidle")
        expect(hint(page)).to_have_count(0)  # here every place that is not a control is too small for one

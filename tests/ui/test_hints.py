"""A first visit: one hint at a time, above the page; what was done or dismissed does not come back."""

import numpy as np
import pytest
from harness.contexts import Contexts
from harness.person import open_page, served_photos, wait_for_picture
from harness.projects import draw_heatmaps, publish_run
from playwright.sync_api import FloatRect, Locator, Page, expect

from annotator.store.database.database import Database

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


@pytest.mark.slow
def test_key_hint_disappears_after_use_or_dismissal_and_never_returns_for_the_annotator(browser, tmp_path):
    with served_photos(tmp_path, 12, ["fox", "heron"]) as served:
        page = open_page(browser, served, "Ann")
        wait_for_picture(page)
        expect(hint(page)).to_have_count(1)
        expect(hint(page)).to_contain_text(CLASSES)
        before = box(page.locator(".stage"))
        page.keyboard.press("1")
        expect(hint(page)).to_contain_text(FINDER)
        page.get_by_role("button", name="Dismiss hint").click()
        expect(hint(page)).to_contain_text(UNDO)
        page.reload()
        wait_for_picture(page)
        expect(hint(page)).to_contain_text(UNDO)
        page.keyboard.press("Backspace")
        expect(hint(page)).to_have_count(0)
        assert box(page.locator(".stage")) == before, "nothing moved under the hand when the last one went"
        page.goto(served.address + "/grid")
        expect(hint(page)).to_contain_text("Tiles are marked already", timeout=60_000)
        page.goto(served.address + "/review")
        expect(page.locator(".empty")).to_contain_text("No suggestions yet", timeout=60_000)
        expect(hint(page)).to_have_count(0)  # there is nothing that they could be about


PICTURES = {
    "annotate": ".stage",
    "autopilot": ".stage, .tile",
    "grid": ".tile",
    "review": ".stage",
    "gallery": ".thumb",
}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.mark.slow
@pytest.mark.parametrize("size", [{}, PHONE], ids=["desk", "phone"])
def test_no_hint_of_any_page_covers_an_image_or_a_control(browser: Contexts, tmp_path, size):
    with served_photos(tmp_path, 60, ["fox", "heron"]) as served:
        chances = np.tile([0.9, 0.7], (60, 1))
        draw_heatmaps(Database(served.project), publish_run(Database(served.project), chances), chances > 0.5)
        seen = []
        page = open_page(browser, served, "Ben", **size)
        for path, pictures in PICTURES.items():
            page.goto(f"{served.address}/{path}")
            page.locator(pictures).locator("visible=true").first.wait_for(timeout=60_000)
            page.wait_for_load_state("networkidle")
            for number in range(3 if page.locator(".hints").is_visible() else 0):
                if number == 0:
                    expect(hint(page)).to_be_visible()
                if not hint(page).count():
                    break
                one = box(hint(page))
                seen.append(hint(page).inner_text())
                for other in page.locator(f":is({pictures}, .root :is(button, input, select)):visible").all():
                    if other.get_attribute("aria-label") != "Dismiss hint":
                        assert not overlap(one, box(other)), (path, seen[-1], other.inner_text())
                page.get_by_role("button", name="Dismiss hint").click()
                page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 150)))")
        assert len(seen) >= (5 if size else 12), seen

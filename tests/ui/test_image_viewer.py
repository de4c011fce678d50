"""Looking closer: zoom, pan, brightness, and the whole picture behind its reduced copy."""

from collections.abc import Iterator

import pytest
from harness.person import Scribe, open_page, served_photos, wait_for_picture
from harness.served import Served, until
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def few(tmp_path_factory) -> Iterator[Served]:
    """An app with 20 tiny images."""
    with served_photos(tmp_path_factory.mktemp("few"), 20, ["fox"]) as served:
        yield served


def scale(page: Page) -> float:
    """How much larger than whole the picture is shown."""
    return page.locator(".frame").evaluate("one => new DOMMatrix(getComputedStyle(one).transform).a")


def middle(page: Page) -> tuple[float, float]:
    box = page.locator(".stage").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.slow
def test_zoom_and_pan_are_reset_for_the_next_image_but_brightness_is_kept(browser, few):
    page = open_page(browser, few, "Looker")
    scribe = Scribe(page)
    wait_for_picture(page)
    page.keyboard.press("PageUp")
    page.keyboard.press("PageUp")
    assert scale(page) == pytest.approx(1.96, abs=0.01)
    page.keyboard.press("Shift+ArrowLeft")
    assert page.locator(".frame").evaluate("one => new DOMMatrix(getComputedStyle(one).transform).e") > 50
    page.mouse.move(*middle(page))
    page.mouse.wheel(0, -200)
    assert scale(page) > 2.5
    page.keyboard.press("Shift+PageUp")
    picture = page.locator(".stage img[data-image]")
    assert picture.evaluate("one => getComputedStyle(one).filter") == "brightness(1.25)"
    scribe.press("1")
    assert scale(page) == 1
    assert picture.evaluate("one => getComputedStyle(one).filter") == "brightness(1.25)"
    page.keyboard.press("Home")
    ratio = page.evaluate("devicePixelRatio")
    assert picture.evaluate("one => one.getBoundingClientRect().width") * ratio == pytest.approx(60, abs=0.5)
    page.keyboard.press("Home")
    assert scale(page) == 1
    page.keyboard.press("Shift+Home")
    assert picture.evaluate("one => getComputedStyle(one).filter") == "none"
    page.get_by_role("button", name="Zoom in").click()
    assert scale(page) == pytest.approx(1.4, abs=0.01)


def test_zoom_to_full_size_loads_the_original_image(browser, tmp_path):
    with served_photos(tmp_path, 3, ["fox"], size=(2400, 1600)) as served:
        page = open_page(browser, served, "Ann")
        wait_for_picture(page)
        picture = page.locator(".stage img[data-image]")
        assert picture.evaluate("one => one.naturalWidth") == 1600
        page.keyboard.press("Home")
        expect(picture).to_have_js_property("naturalWidth", 2400)
        assert "full=1" in picture.get_attribute("src")


@pytest.mark.slow
def test_dragging_moves_a_zoomed_image_and_stops_at_its_edge(browser, few):
    page = open_page(browser, few, "Ann")
    wait_for_picture(page)
    place = "one => { const at = new DOMMatrix(getComputedStyle(one).transform); return [at.e, at.f]; }"
    for _ in range(3):
        page.keyboard.press("PageUp")
    left, top = middle(page)
    page.mouse.move(left, top)
    page.mouse.down()
    page.mouse.move(left - 60, top + 40, steps=3)
    assert page.locator(".frame").evaluate(place) == pytest.approx([-60, 40], abs=1)
    page.mouse.move(left - 2000, top, steps=3)
    page.mouse.up()
    edge = page.locator(".frame").evaluate("one => one.getBoundingClientRect().right")
    box = page.locator(".stage").bounding_box()
    assert edge == pytest.approx(box["x"] + box["width"], abs=1)
    page.mouse.move(left, top)
    assert page.locator(".frame").evaluate("one => one.getBoundingClientRect().right") == edge, "nothing is held"


@pytest.mark.slow
def test_two_fingers_zoom_and_move_the_image(browser, few):
    page = open_page(browser, few, "Thumb", has_touch=True)
    wait_for_picture(page)
    hand = page.context.new_cdp_session(page)
    x, y = middle(page)

    def touch(kind: str, *at: tuple[float, float]) -> None:
        points = [{"x": x + right, "y": y + down, "id": number} for number, (right, down) in enumerate(at)]
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def offset() -> float:
        return page.locator(".frame").evaluate("one => new DOMMatrix(getComputedStyle(one).transform).e")

    def shown(times: float, aside: float) -> None:
        """Chromium throttles touches: a second move may come a fifth of a second late."""
        until(lambda: scale(page) == pytest.approx(times, abs=0.05) and offset() == pytest.approx(aside, abs=2))

    touch("touchStart", (-50, 0), (50, 0))
    touch("touchMove", (-150, 0), (150, 0))
    shown(3, 0)
    touch("touchMove", (-110, 0), (190, 0))
    shown(3, 40)
    touch("touchEnd")


@pytest.mark.slow
def test_focus_outline_appears_after_tab_and_not_after_a_click(browser, few):
    page = open_page(browser, few, "Clicker")
    wait_for_picture(page)
    page.mouse.click(*middle(page))
    page.keyboard.press("PageUp")
    assert page.evaluate("document.querySelector(':focus-visible') === null")
    assert page.evaluate("document.activeElement === document.body")
    page.keyboard.press("Tab")
    framed = """() => {
      let one = document.activeElement;
      while (one.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
      return one.matches(":focus-visible");
    }"""
    assert page.evaluate(framed), "reached by keys, it is framed"

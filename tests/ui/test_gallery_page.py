"""The Gallery in a real Chromium: what is listed, selected and changed at once is what the store has."""

import uuid
from collections.abc import Iterator

import pytest
from harness.contexts import Contexts
from harness.person import decided, labels_of, open_page, served_photos, wait_until_saved
from harness.served import Served, until
from playwright.sync_api import APIResponse, Page, Route, expect

from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions

pytestmark = pytest.mark.browser

COUNT = 700
FOX, HERON, DEER, WOLF = 1, 2, 3, 4
STATES = {"": 1, "✕ ": -1, "? ": 0}
SHOWN = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".scroller"));
  return [...(host?.shadowRoot.querySelectorAll(".thumb[data-image]") ?? [])].map((tile) => [
    Number(tile.dataset.image), [...tile.querySelectorAll(".label")].map((label) => label.textContent)]);
}"""
# The list alone, of a million rows so tall that no browser draws it in one piece.
FAR = """async ([address, rows, height]) => {
  const { Scroller } = await import(address);
  const host = document.createElement("div");
  host.style.cssText = "position:fixed;inset:0;height:600px;width:600px;display:flex;z-index:9";
  document.body.append(host);
  const list = new Scroller({ onMove() {}, onStill() {}, onResize() {} });
  list.element.style.cssText = "flex:1;overflow:auto";
  list.content.style.position = "relative";
  host.append(list.element);
  const frames = async (count) => { for (let n = 0; n < count; n += 1) await new Promise(requestAnimationFrame); };
  await frames(3);
  list.lay(rows, height);
  const seen = [];
  const scroll = async (to) => { list.element.scrollTop = to; await frames(3); };
  for (const share of [0.25, 0.5, 0.75, 1]) {
    await scroll(share * (list.element.scrollHeight - 600));
    seen.push([share, list.inSight.first / rows, list.inSight.last]);
  }
  list.reveal(rows / 2);
  const steps = [];
  for (let n = 0; n < 5; n += 1) {
    const before = list.position;
    await scroll(list.element.scrollTop + 120);
    steps.push(list.position - before);
  }
  const placed = list.topOf(list.inSight.first) - list.element.scrollTop;
  await new Promise((done) => setTimeout(done, 300));
  await frames(3);
  steps.push(list.topOf(list.inSight.first) - list.element.scrollTop - placed);
  list.close();
  host.remove();
  return { seen, steps };
}"""

# The bar dragged to and fro without a rest, until a tile far down has its name.
DRAG = """async (list) => {
  const frame = () => new Promise(requestAnimationFrame);
  const known = () => [...list.querySelectorAll(".thumb[data-image]")].some((tile) => Number(tile.dataset.image) > 200);
  const began = performance.now();
  for (let turn = 0; !known() && performance.now() - began < 10000; turn += 1) {
    list.scrollTop = list.scrollHeight * (turn % 2 ? 0.9 : 0.5);
    await frame();
  }
  return known();
}"""


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Iterator[Served]:
    """An app with 700 tiny images; the heron is present on the first eight, absent on the next four."""
    with served_photos(
        tmp_path_factory.mktemp("gallery"), COUNT, ["fox", "heron\tgrey", "deer", "wolf & dog"]
    ) as served:
        given = [
            Decision(str(uuid.uuid4()), "label", "Ben", "click", image, HERON, 1 if image <= 8 else -1)
            for image in range(1, 13)
        ]
        assert not decisions.save(Database(served.project), given).refused
        yield served


def open_gallery(browser: Contexts, served: Served, name: str, path: str = "/gallery", **more) -> Page:
    page = open_page(browser, served, name, path, **more)
    page.locator(".thumb img").first.wait_for(timeout=60_000)
    return page


def shown(page: Page) -> dict[int, dict[str, int]]:
    """Image -> class -> state, of the tiles that there are."""
    return {
        image: {label.lstrip("✕? "): STATES[label[: len(label) - len(label.lstrip("✕? "))]] for label in labels}
        for image, labels in page.evaluate(SHOWN)
    }


def count(page: Page, words: str) -> None:
    expect(page.locator(".count")).to_have_text(words)


def selected(page: Page, number: int) -> None:
    expect(page.locator(".panel h3")).to_have_text(f"{number} selected" if number else "Nothing selected")


def set_two(page: Page) -> None:
    """The fox is present and the deer absent on what is selected, by keys alone."""
    page.keyboard.press("c")
    page.keyboard.type("fox")
    page.keyboard.press("Enter")
    page.keyboard.type("der")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")


def images_with(served: Served, class_id: int, state: int) -> set[int]:
    rows = Database(served.project).rows(
        "SELECT image_id FROM label WHERE class_id = ? AND state = ?", [class_id, state]
    )
    return {row["image_id"] for row in rows}


@pytest.mark.slow
def test_gallery_filter_is_kept_in_the_url_across_reload_back_and_copied_links(browser, many):
    page = open_gallery(browser, many, "Filter")
    count(page, "700 images")
    page.keyboard.press("/")
    page.keyboard.type("hero")
    page.keyboard.press("Enter")
    count(page, "8 of 700 images")
    assert page.url.endswith("/gallery?has=heron")
    assert set(shown(page)) == set(range(1, 9))
    page.get_by_role("button", name="has heron").click()
    page.get_by_label("Images by class").select_option("lacks")
    page.get_by_label("Class", exact=True).fill("heron")
    page.keyboard.press("Enter")
    count(page, "4 of 700 images")
    page.get_by_label("Order", exact=True).select_option("decided")
    page.get_by_label("Descending").or_(page.get_by_label("Ascending")).click()
    until(lambda: list(shown(page)) == [12, 11, 10, 9])
    copied = page.url
    page.reload()
    until(lambda: list(shown(page)) == [12, 11, 10, 9])
    for _ in range(4):
        page.go_back()
    count(page, "8 of 700 images")
    page.go_forward()
    count(page, "700 images")
    other = open_gallery(browser, many, "Copied", copied.removeprefix(many.address))
    assert list(shown(other)) == [12, 11, 10, 9]
    other.get_by_label("File name").fill("no such file")
    other.keyboard.press("Enter")
    expect(other.get_by_text("No image matches this filter.")).to_be_visible()
    other.get_by_role("button", name="Clear filter").last.click()
    count(other, "700 images")
    link = open_gallery(browser, many, "Copied", "/gallery?open=wolf+%26+dog&lacks=heron&has=unheard+of")
    count(link, "4 of 700 images")
    expect(link.locator(".words")).to_contain_text('There is no class "unheard of"')
    assert page.troubles == other.troubles == link.troubles == []


def test_gallery_selection_is_labeled_and_undone_in_one_step(browser, many):
    page = open_gallery(browser, many, "Keys")
    before = {state: images_with(many, DEER, state) for state in (1, -1)}
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowLeft")
    selected(page, 2)
    set_two(page)
    assert [shown(page)[image].get("fox") for image in (1, 2, 3, 4)] == [None, 1, 1, None]  # in the same frame
    page.keyboard.press("Escape")
    selected(page, 0)
    boxes = [page.locator(f"#gallery-{index}").bounding_box() for index in (5, 6)]
    page.mouse.move(boxes[0]["x"] + 40, boxes[0]["y"] + 40)
    page.mouse.down()
    page.mouse.move(boxes[1]["x"] + 40, boxes[1]["y"] + 60, steps=6)
    page.mouse.up()
    tiles = page.locator(".thumb[aria-selected=true]")
    expect(tiles).to_have_count(2)  # drawn in the next frame, which a busy machine shows later
    drawn = {int(tile.get_attribute("data-image")) for tile in tiles.all()}
    page.locator("#gallery-10").click(modifiers=["Control"])
    page.locator("#gallery-12").click(modifiers=["Shift"])
    selected(page, 5)
    set_two(page)
    page.keyboard.press("Backspace")
    expect(page.locator(".words")).to_contain_text("fox present, deer absent on 5 images")
    assert not any("fox" in shown(page)[image] for image in (11, *drawn)) and shown(page)[2]["fox"] == 1
    page.keyboard.press("Shift+Backspace")
    wait_until_saved(page, 4)
    wanted = {2, 3, 11, 12, 13} | drawn
    assert images_with(many, FOX, 1) == wanted == images_with(many, DEER, -1) - before[-1]
    assert {image for image, labels in shown(page).items() if labels.get("deer") == -1} >= wanted
    page.keyboard.press("Escape")
    page.keyboard.press("Control+a")
    selected(page, COUNT)
    set_two(page)
    assert all(labels["fox"] == 1 and labels["deer"] == -1 for labels in shown(page).values())
    wait_until_saved(page, 5)
    assert len(images_with(many, FOX, 1)) == len(images_with(many, DEER, -1)) == COUNT, "1,400 cells are one batch"
    page.reload()
    page.locator(".thumb img").first.wait_for()
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Backspace")
    expect(page.locator(".words")).to_contain_text("Undid: 1,400 answers for fox, deer (700 present, 700 absent).")
    wait_until_saved(page, 1)
    assert images_with(many, FOX, 1) == wanted
    until(lambda: {image for image, labels in shown(page).items() if "fox" in labels} == wanted & set(shown(page)))
    rows = [row for row in decided(many, "Keys") if row["action"] != "undo"]
    assert len({row["batch"] for row in rows}) == 4 and {row["source"] for row in rows} == {"gallery"}
    assert page.troubles == []


@pytest.mark.slow
def test_gallery_jumps_to_a_position_opens_the_image_and_returns_to_it(browser, many):
    page = open_gallery(browser, many, "Jump", "/gallery?down=1")
    page.keyboard.press("Control+g")
    page.keyboard.type("500")
    page.keyboard.press("Enter")
    expect(page.locator(".thumb.at")).to_have_attribute("data-image", str(COUNT - 499))
    page.keyboard.press("End")
    expect(page.locator(".thumb.at")).to_have_attribute("data-image", "1")
    page.keyboard.press("g")
    page.keyboard.type("600")
    page.keyboard.press("Enter")
    expect(page.locator(".thumb.at")).to_have_attribute("data-image", "101")
    small = page.locator(".thumb.at").bounding_box()["width"]
    page.keyboard.press("+")
    expect(page.locator(".thumb.at")).to_be_in_viewport()
    assert page.locator(".thumb.at").bounding_box()["width"] > small
    for _ in range(9):
        page.keyboard.press("-")
    assert page.locator(".thumb").first.bounding_box()["width"] >= 120
    page.keyboard.press("Enter")
    page.wait_for_url("**/annotate?image=101&*")
    page.go_back()
    expect(page.locator(".thumb.at")).to_have_attribute("data-image", "101")
    expect(page.locator(".thumb.at")).to_be_in_viewport()
    page.locator("#gallery-601").dblclick()
    page.wait_for_url("**/annotate?image=99&*")


@pytest.mark.slow
def test_gallery_decisions_survive_a_server_kill(browser, tmp_path):
    with served_photos(tmp_path, 30, ["fox", "heron", "deer"]) as served:
        page = open_gallery(browser, served, "Ann")
        page.wait_for_load_state("networkidle")
        served.kill()
        page.keyboard.press("Control+a")
        selected(page, 30)
        set_two(page)
        page.keyboard.press("Escape")
        page.keyboard.press("Home")
        page.keyboard.press(" ")
        page.keyboard.press("c")
        page.keyboard.type("fox")
        for _ in range(4):
            page.keyboard.press("Enter")  # unknown: no answer any more
        page.keyboard.press("Control+Enter")
        assert "fox" not in shown(page)[1] and shown(page)[2] == {"fox": 1, "deer": -1}
        served.start()
        page.reload()
        wait_until_saved(page)
        until(lambda: len(decided(served, "Ann")) == 61)  # sent by the page before or after it was reloaded
        assert labels_of(served, 1) == {DEER: -1} and labels_of(served, 30) == {FOX: 1, DEER: -1}
        until(lambda: len(shown(page)) > 10)
        assert len(decided(served, "Ann")) == 61


@pytest.mark.slow
def test_late_gallery_response_does_not_hide_a_newer_decision(browser, many):
    page = open_gallery(browser, many, "Late")
    page.wait_for_load_state("networkidle")
    held: list[tuple[Route, APIResponse]] = []

    def say(presses: int) -> None:
        page.keyboard.press("c")
        page.keyboard.type("wolf")
        for _ in range(presses):
            page.keyboard.press("Enter")
        page.keyboard.press("Control+Enter")

    page.locator("#gallery-20").click()
    page.route("**/api/gallery", lambda route: held.append((route, route.fetch())))
    say(1)
    wait_until_saved(page, 1)
    until(lambda: shown(page) and held)  # what is read after it was saved: the answer is made now and comes late
    say(2)
    wait_until_saved(page, 2)
    assert shown(page)[21]["wolf & dog"] == -1
    route, answer = held[0]
    route.fulfill(response=answer)
    until(lambda: shown(page) and len(held) > 1)
    assert shown(page)[21]["wolf & dog"] == -1 and labels_of(many, 21)[WOLF] == -1
    for route, answer in held[1:]:
        route.fulfill(response=answer)


@pytest.mark.slow
def test_gallery_shows_image_names_while_the_scrollbar_is_dragged(browser, many):
    page = open_gallery(browser, many, "Drag")
    page.wait_for_load_state("networkidle")
    assert page.locator(".scroller").evaluate(DRAG)


@pytest.mark.slow
def test_gallery_renders_and_requests_only_images_in_view(browser, many):
    page = open_gallery(browser, many, "Far")
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator(".scroller").evaluate("(list) => { list.scrollTop = list.scrollHeight; }")
    page.locator(f".thumb[data-image='{COUNT}'] img").wait_for()
    page.wait_for_load_state("networkidle")
    there = page.locator(".thumb").count()
    thumbs = {url for url in asked if "/api/thumb/" in url}
    assert there < 100 and len(thumbs) <= there, "no picture of what was scrolled past"
    far = page.evaluate(FAR, [f"/api/script/{many.token}/gallery/scroller.js", 1_000_000, 360])
    assert far["seen"][-1][2] == 999_999
    assert all(abs(share - at) < 0.02 for share, at, _ in far["seen"]), "the bar shows where one is"
    assert far["steps"][:5] == pytest.approx([120] * 5, abs=1), "a wheel moves the rows by pixels"
    assert far["steps"][5] == pytest.approx(0, abs=1), "the bar is put right, and the rows stay"
    assert page.troubles == []

"""The menus at the top by mouse, keyboard and thumb; what a project without answers lists; and the project's name."""

from collections.abc import Iterator

import pytest
from harness.browser import open_by_menu
from harness.contexts import Contexts
from harness.grids import KIND
from harness.person import labels_of, on_screen, open_page, served_photos, wait_for_picture, wait_until_saved
from harness.served import Served, serving, until
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=document.title='owned'> *birds* \N{RIGHT-TO-LEFT OVERRIDE}" + 80 * "x"
OVERLAP = """() => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((one) =>
    [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
  const seen = all(document).filter((one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }));
  const boxes = (selector) => seen.filter((one) => one.matches(selector)).map((one) => one.getBoundingClientRect());
  const menus = boxes("[data-testid=stTopNavSection], [data-testid=stExpandSidebarButton]");
  const line = boxes(".project, .measure, .who b, .figures, .who button");
  const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
  const within = line.every((one) => one.left >= 0 && one.right <= innerWidth);
  const free = menus.every((menu) => line.every((one) => apart(menu, one)));
  return { menus: menus.length, line: line.length, within, apart: free };
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    with served_photos(tmp_path_factory.mktemp("menus"), 12, ["fox", "heron", "deer"]) as served:
        yield served


@pytest.fixture
def unanswered(tmp_path) -> Iterator[Served]:
    with served_photos(tmp_path, 12, ["fox", "heron", "deer"]) as served:
        yield served


def menus(page: Page) -> list[str]:
    page.get_by_test_id("stTopNavSection").first.wait_for(timeout=60_000)
    return [text.split()[0] for text in page.get_by_test_id("stTopNavSection").all_inner_texts()]


@pytest.mark.slow
def test_look_and_check_menus_are_hidden_until_the_first_decision(browser: Contexts, unanswered):
    page = open_page(browser, unanswered, "Ann")
    wait_for_picture(page)
    assert menus(page) == ["Label", "Data", "Project"]
    page.goto(f"{unanswered.address}/gallery")
    page.locator(".thumb img").first.wait_for(timeout=60_000)  # not listed yet, and open
    open_by_menu(page, "Annotate")
    wait_for_picture(page)
    page.keyboard.press("1")
    wait_until_saved(page, 1)
    assert menus(page) == ["Label", "Data", "Project"], "nothing moves while one works"
    open_by_menu(page, "Autopilot")
    expect(page.get_by_test_id("stTopNavSection")).to_have_count(5)
    assert menus(page) == ["Label", "Look", "Check", "Data", "Project"]
    for title, there in (("Gallery", ".thumb img"), ("People", "[data-testid=stMetric]"), ("Members", ".stHeading")):
        open_by_menu(page, title)
        page.locator(there).first.wait_for(timeout=60_000)
    assert page.troubles == []


@pytest.mark.slow
def test_root_url_opens_autopilot_and_old_urls_redirect(browser: Contexts, served):
    page = open_page(browser, served, "Ann", "/autopilot?from=progress")
    until(lambda: page.evaluate(KIND))
    assert page.url == f"{served.address}/?from=progress"
    assert page.title() == "project - Autopilot"
    page.goto(f"{served.address}/?image=3")
    page.locator(".stage img[data-image='3']").wait_for(timeout=60_000)
    assert page.url == f"{served.address}/annotate?image=3" and page.title() == "project - Annotate"
    assert page.troubles == []


@pytest.mark.slow
def test_open_menu_receives_key_presses_instead_of_the_annotate_page(browser: Contexts, served):
    page = open_page(browser, served, "Ann")
    wait_for_picture(page)
    image = on_screen(page)
    menu = page.get_by_test_id("stTopNavSection").filter(has_text="Label")
    menu.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    items = page.get_by_role("menuitem")
    expect(items).to_have_count(4)
    expect(items.first).to_be_focused()
    page.keyboard.press("1")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(items.nth(2)).to_be_focused()
    page.keyboard.press("Escape")
    expect(items).to_have_count(0)
    assert on_screen(page) == image
    page.keyboard.press("Shift+2")
    wait_until_saved(page, 1)
    assert labels_of(served, image) == {2: 1}, "and not the 1 that was pressed in the menu"
    menu.click()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review")
    assert page.troubles == []


@pytest.mark.slow
def test_phone_sidebar_lists_the_pages_under_their_headings(browser: Contexts, served):
    page = open_page(browser, served, "Ann", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    wait_for_picture(page)
    page.get_by_test_id("stExpandSidebarButton").tap()
    bar = page.get_by_test_id("stSidebarNav")
    for heading in ("Label", "Data", "Project"):
        expect(bar.get_by_role("group", name=heading, exact=True)).to_be_visible()
    expect(page.locator(".project")).to_be_hidden()  # where the list is
    bar.get_by_role("link", name="Export").tap()
    page.wait_for_url("**/export")


@pytest.mark.slow
def test_project_name_is_escaped_in_header_and_title_and_overlaps_nothing(browser: Contexts, tmp_path):
    with served_photos(tmp_path, 4, ["fox"]) as before:
        folder = before.project.rename(tmp_path / HOSTILE)
    with serving(folder) as served:
        for width in (1366, 768, 390):
            page = open_page(browser, served, "Ann", viewport={"width": width, "height": 768})
            wait_for_picture(page)
            expect(page).to_have_title(f"{HOSTILE} - Annotate")
            expect(page.locator(".project")).to_have_text(HOSTILE)
            expect(page.locator(".project")).to_have_attribute("title", HOSTILE)
            found = page.evaluate(OVERLAP)
            assert found["apart"] and found["within"] and found["menus"] and found["line"] >= 3, (width, found)
            assert page.locator(".project *").count() == 0 and page.troubles == []

"""Whatever people and files are called, pages show it as text: a name fetches, links and runs nothing."""

from urllib.parse import quote

import pytest
from harness.contexts import Contexts
from harness.hostile import (
    ANN,
    ATTRIBUTE,
    BEN,
    CLAIMS,
    FOLDER,
    HOST,
    LIST,
    MARKUP,
    NETWORK,
    SOURCE,
    TAG,
    VALUE,
    hostile_project,
    outside,
)
from harness.member_requests import browser_cookie
from harness.page_scripts import texts_of
from harness.person import open_page, wait_until_fetched
from harness.served import PAGES_ALONE, TEAM_PAGES, serving, until
from harness.short_forms import mark_slow_after
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from annotator.store.database.database import Database
from annotator.store.events import project_events
from annotator.ui.access import served_project
from annotator.ui.shared.markdown_text import WORD_JOINER, escape_for_screen_reader, escape_markdown

NAMES = (*MARKUP, ANN, BEN, SOURCE, TAG, NETWORK, LIST, ATTRIBUTE, VALUE, FOLDER, CLAIMS["name"], f"(www.{HOST})")
PAGES = {
    "annotate": ".stage img[data-image]",
    "autopilot": ".stage img[data-image], .tile[data-image] img",
    "grid": ".tile[data-image] img",
    "review": ".suggestion",
    "gallery": ".thumb img",
    "map": "canvas",
    "progress": "[data-testid=stVegaLiteChart]",
    "certificate": "[data-testid=stVegaLiteChart]",
    "imports": ".upload button",
    "export": "[data-testid=stDownloadButton]",
    "images": ".as-text",
    "events": ".strip",
    "settings": "[data-testid=stSelectbox]",
    "classes": "[data-testid=stForm]",
    "agreement": "[data-testid=stVegaLiteChart]",
    "assignment": "[data-testid=stForm]",
    "people": "[data-testid=stMetric]",
    "members": ".stHeading",
    "speed_test": "h1, h2, h3, button",
}
STREAMLITS = (
    "progress",
    "agreement",
    "assignment",
    "people",
    "certificate",
    "imports",
    "export",
    "images",
    "events",
    "settings",
    "classes",
)
SCRIPT = """
from importlib import import_module
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.shared.navigation import find_page_module
one = import_module(find_page_module("{name}"))
with show_errors():
    one.page()
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory) -> Database:
    db = hostile_project(tmp_path_factory.mktemp("hostile"))
    project_events.find_and_save(db)
    return db


def test_escaped_markdown_unescapes_to_the_original_and_keeps_plain_text():
    for name in MARKUP:
        assert name not in escape_markdown(name)
        assert escape_markdown(name).replace("\\", "").replace(WORD_JOINER, "") == name
        assert escape_for_screen_reader(name).replace(WORD_JOINER, "") == name
    lines = escape_markdown("one\n    two\n\n# three\n===").split("\\\n")
    assert lines == ["one", "\u00a0" * 4 + "two", "", "\\# three", "\\=\\=\\="]
    for plain in ("fox", "it's 5 of 7, isn't it", "Größe; 100 %"):
        assert escape_markdown(plain) == plain


@pytest.mark.parametrize("name", mark_slow_after(4, STREAMLITS))
def test_page_markdown_contains_no_unescaped_image_class_or_annotator_name(db, name):
    served_project.open_project(db.paths.project)
    test = AppTest.from_string(SCRIPT.format(name=name), default_timeout=120)
    test.session_state["name"] = ANN
    test.session_state["card_shown"] = True  # the data card on Export, which is computed in the background
    test.run()
    while name == "export" and not test.exception and test.get("progress"):
        test.run()
    assert not test.exception
    for is_markdown, text in texts_of(test):
        if is_markdown:
            assert not any(name in text for name in NAMES), text
        else:
            assert not any(escape_markdown(name) in text for name in NAMES), f"shown with its escapes: {text}"


def test_error_message_shows_a_name_as_plain_text(db):
    served_project.open_project(db.paths.project)
    test = AppTest.from_string(SCRIPT.format(name="classes"), default_timeout=120)
    test.session_state["name"] = ANN
    test.run()
    test.text_area(key="class_lines").input(MARKUP[0] + 200 * "x")
    next(one for one in test.button if one.label == "Add classes").click().run()
    assert escape_markdown(MARKUP[0]) in test.error[0].value


FOUND = f"""() => {{
  const all = (root) => [...root.querySelectorAll("*")].flatMap((one) =>
    [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
  const found = all(document).filter((one) => [one.src, one.href, one.getAttribute("onerror")].some((text) =>
    text?.includes?.("{HOST}")) || one.alt === "Streamlit logo");
  return found.map((one) => one.outerHTML);
}}"""
DRAWN = """() => [...document.querySelectorAll("[data-testid=stVegaLiteChart]")].every((chart) =>
  chart.querySelector("svg text, canvas"))"""
# What the policy of a page has kept it from.
KEPT_OFF = """window.keptOff = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.keptOff.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));"""


def fetches(page: Page, source: str) -> None:
    page.evaluate("(source) => { new Image().src = source; }", source)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("to", ["local", "members"])
def test_hostile_names_on_pages_cause_no_requests_links_or_missing_text(browser: Contexts, db, to):
    python = PAGES_ALONE if to == "local" else TEAM_PAGES
    with outside() as (proxy, asked), serving(db.paths.project, python) as served:
        page = open_page(browser, served, quote(ANN), "/_stcore/health", proxy={"server": proxy, "bypass": "127.0.0.1"})
        if to == "members":
            page.context.add_cookies([browser_cookie(served, ANN)])
        page.add_init_script(KEPT_OFF)
        troubles = []
        page.on("console", lambda one: one.type == "error" and troubles.append(f"{one.text} {one.location['url']}"))
        for name, there in PAGES.items():
            page.goto(f"{served.address}/{name}")
            expect(page.locator(there).first, f"{name}: {there}").to_be_visible(timeout=60_000)
            wait_until_fetched(page)
            assert page.evaluate(FOUND) == [], name
            page.wait_for_function(DRAWN)
            if name in ("annotate", "review"):
                page.keyboard.press(";")
                page.locator(".history li", has_text=MARKUP[1]).first.wait_for()
                assert page.evaluate(FOUND) == [], name
                page.keyboard.press("Escape")
            kept_off = page.evaluate("window.keptOff")
            assert (asked, page.troubles, troubles, kept_off) == ([], [], [], []), name
        page.goto(f"{served.address}/classes")
        # Streamlit's own download of a table would not keep names from being formulas (test_spreadsheet_formulas.py).
        page.get_by_test_id("stDataFrame").first.hover()
        expect(page.get_by_role("button", name="Search").first).to_be_visible()
        expect(page.get_by_role("button", name="Download as CSV")).to_have_count(0)
        page.get_by_label("One class per line").fill("\n".join(f"image\n{name}{200 * 'x'}" for name in (*MARKUP, ANN)))
        page.get_by_role("button", name="Add classes").click()
        box = page.locator("[data-testid=stAlert]")
        box.wait_for()
        shown = box.inner_text().replace(WORD_JOINER, "")
        assert all(name[:40] in shown for name in (*MARKUP, ANN)), shown
        assert page.evaluate(FOUND) == [] and box.locator("a, img").count() == 0
        # Even a picture of another server that did get on a page would not be asked for; the proxy does count.
        fetches(page, f"http://{HOST}/on-our-page.png")
        page.wait_for_function("window.keptOff.length")
        assert page.evaluate("window.keptOff")[0].startswith(f"img-src http://{HOST}/on-our-page.png") and not asked
        page.goto("about:blank")
        fetches(page, f"http://{HOST}/elsewhere.png")
        until(lambda: asked == [f"GET http://{HOST}/elsewhere.png HTTP/1.1"])

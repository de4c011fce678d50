"""Every page as axe-core, a keyboard and a thumb find it: no serious findings, nothing out of reach, nothing too small.

In both themes at four sizes. Findings count wherever they are; those inside
Streamlit's own widgets, which nobody here can change, stand in STREAMLITS with the reason.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import projects
from harness.axe_findings import findings
from harness.browser import sign_in_context
from harness.child_processes import serve_page
from harness.contexts import Contexts
from harness.short_forms import mark_slow_after
from playwright.sync_api import Page, expect

from annotator.quality import audit_sampling
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.image_map import save_map
from annotator.store.database.database import Database
from annotator.store.events import project_events
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.runs import prediction_sources
from annotator.store.runs.prediction_boxes import CellBoxes, to_stored_boxes

pytestmark = pytest.mark.browser

SIZES = {
    "desk": {"viewport": {"width": 1280, "height": 800}},
    "wide": {"viewport": {"width": 1920, "height": 1080}},
    "tablet": {"viewport": {"width": 768, "height": 1024}, "has_touch": True},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}
LOOKS = {
    f"{size} {theme}": {"color_scheme": theme, **options}
    for size, options in SIZES.items()
    for theme in ("light", "dark")
}
USUAL = "desk light"  # the others are slow tests
# What is on each page once it is there.
PAGES = {
    "annotate": ".stage img[data-image]",
    "autopilot": ".stage img[data-image], .tile[data-image] img",
    "grid": ".tile[data-image] img",
    "grid?audit=1": ".tile[data-image] img",
    "review": ".suggestion",
    "gallery": ".thumb img",
    "map": "canvas",
    "progress": "canvas, [data-testid=stVegaLiteChart]",
    "certificate": "[data-testid=stVegaLiteChart]",
    "imports": ".upload button",
    "export": "[data-testid=stDownloadButton], [data-testid=stButton]",
    "images": ".as-text",
    "events": ".gaps, .strip",
    "classes": "[data-testid=stForm]",
    "settings": "[data-testid=stSelectbox]",
    "speed_test": ".sheet button",
    "agreement": "[data-testid=stVegaLiteChart]",
    "members": "[data-testid=stCode]",
    "assignment": "[data-testid=stForm]",
    "people": "[data-testid=stMetric]",
}
COMPONENTS = ("annotate", "autopilot", "grid", "review", "gallery", "map", "grid?audit=1", "speed_test")
TARGET, SMALL_TARGET = 44, 24  # CSS pixels; the smaller one for what stands inside a chip

IN_OURS = """(() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".root"));
  const all = [...host.shadowRoot.querySelectorAll("button, input, select, textarea, a[href], summary, [tabindex]")];
  const open = host.shadowRoot.querySelector("dialog[open]");
  return all.filter((one) => (!open || open.contains(one)) && !one.disabled && one.checkVisibility({
    visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true }));
})()"""
NAME = """(one) => [one.tagName.toLowerCase(), ...one.classList].join(".") +
  ` "${(one.getAttribute("aria-label") ?? one.textContent).trim().slice(0, 40)}"`"""
TOO_SMALL = f"""([most, least]) => {IN_OURS}.flatMap((one) => {{
  const target = one.matches("input") ? one.closest("label") ?? one : one;
  const {{ width, height }} = target.getBoundingClientRect();
  const wanted = one.closest(".chip") ? least : most;
  if (one.matches("canvas") || Math.min(width, height) >= wanted - 0.5) return [];
  return [`${{({NAME})(one)}}: ${{Math.round(width)}} x ${{Math.round(height)}}`];
}})"""
REACHABLE = f"() => {IN_OURS}.filter((one) => one.tabIndex >= 0).map({NAME})"
FOCUSED = f"""() => {{
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  if (!one?.getRootNode().host) return null;
  const {{ outlineStyle, outlineWidth, boxShadow }} = getComputedStyle(one);
  const seen = (outlineStyle !== "none" && parseFloat(outlineWidth) >= 2) || boxShadow !== "none";
  return {{ name: ({NAME})(one), seen }};
}}"""


@pytest.fixture(scope="module")
def full(tmp_path_factory) -> Path:
    """A project with labels, a run, suggestions with heat maps, and a map."""
    db = projects.make_project(tmp_path_factory.mktemp("accessible"), 160, 20)
    chance = np.random.default_rng(0)
    probabilities = np.where(chance.random((160, 20)) < 0.2, chance.uniform(0.6, 0.99, (160, 20)), 0.05)
    projects.draw_heatmaps(db, projects.publish_run(db, probabilities), probabilities > 0.5)
    ids = [image.id for image in images.load_all_images(db)]
    cells = np.array([(image_id, class_id) for image_id in ids for class_id in range(1, 21)])
    where = CellBoxes(
        *np.zeros((2, len(cells)), int), np.tile([0.2, 0.2, 0.5, 0.5], (len(cells), 1)), np.ones(len(cells))
    )
    scored = (np.array(ids), np.arange(1, 21), np.ones((160, 20)))
    drawn = to_stored_boxes(*cells.T, where)
    prediction_sources.add(db, "MD", "probability", "Ann", *scored[:2], lambda: [scored], boxes=drawn)
    save_map(db.paths.map(DEFAULT_BACKBONE), np.array(ids), chance.random((160, 2)).astype(np.float32))
    audit_sampling.draw_audit(db, 1200, seed=1)
    # Of two classes every drawn cell is answered, so that the certificate has something to draw.
    answered = [one for one in audit_sampling.load_open_cells(db) if one.class_id <= 2]
    answers = [
        Decision(str(uuid.uuid4()), "label", "Ann", "audit", one.image_id, one.class_id, -1 if number % 3 else 1)
        for number, one in enumerate(answered)
    ]
    assert answers and not decisions.save(db, answers).refused
    # Three people answered the same questions, and not all alike.
    decisions.save(
        db,
        [
            Decision(str(uuid.uuid4()), "label", name, "click", image_id, 3, 1 if (image_id + number) % 7 else -1)
            for image_id in ids[:40]
            for number, name in enumerate(("Ann", "Ben", "Cid"))
        ],
    )
    with db.writing() as sql:
        sql.execute("UPDATE image SET captured_at = 1.7e9 + 50 * (id % 3) * id")
    project_events.find_and_save(db)
    return db.paths.project


@pytest.fixture(scope="module")
def address(full) -> Iterator[str]:
    """The app on it, without a worker."""
    with serve_page(Database(full)) as page:
        yield page.address


@pytest.fixture(params=[name if name == USUAL else pytest.param(name, marks=pytest.mark.slow) for name in LOOKS])
def look(request, browser: Contexts, full: Path, address: str) -> Page:
    return opened(browser, full, address, request.param)


def opened(browser: Contexts, full: Path, address: str, look: str) -> Page:
    """A page in one look."""
    context = browser.take(**LOOKS[look])
    sign_in_context(context, full, address, f"Ann {look}")
    return browser.page_of(context)


def visit(page: Page, address: str, name: str) -> Page:
    page.goto(address if name == "autopilot" else f"{address}/{name}")
    page.locator(PAGES[name]).first.wait_for(timeout=60_000)
    page.locator(".who b").wait_for(timeout=60_000)  # the line at the top, which mends Streamlit's sidebar
    page.wait_for_load_state("networkidle")
    assert page.troubles == []
    return page


def assert_tab_reaches_and_shows_every_control(page: Page) -> None:
    there = page.evaluate(REACHABLE)
    reached, unseen = set(), set()
    for _ in range(len(there) + 60):
        page.keyboard.press("Tab")
        if focused := page.evaluate(FOCUSED):
            reached.add(focused["name"])
            if not focused["seen"]:
                unseen.add(focused["name"])
    assert there and set(there) - reached == set()
    assert unseen == set()


@pytest.mark.parametrize("name", mark_slow_after(1, PAGES))
def test_pages_and_help_pass_axe_and_tab_reaches_every_control(look, address, name, request):
    page = visit(look, address, name)
    found = findings(page)
    assert not found, f"{name}:\n" + "\n".join(found)
    if name in COMPONENTS[:5]:
        page.keyboard.press("F1")
        page.locator("dialog[open]").first.wait_for()
        found = findings(page)
        assert not found, f"help of {name}:\n" + "\n".join(found)
        page.keyboard.press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(0)
    if name in COMPONENTS and request.node.callspec.params["look"] == USUAL:
        assert_tab_reaches_and_shows_every_control(page)


def test_disabled_buttons_use_the_same_text_color(browser, full, address):
    page = visit(opened(browser, full, address, USUAL), address, "classes")
    colors = [
        page.get_by_role("button", name=name, exact=True).locator("p").evaluate("(one) => getComputedStyle(one).color")
        for name in ("Save", "Discard changes")
    ]
    assert colors[0] == colors[1], "axe leaves buttons that are disabled out"


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPONENTS)
def test_every_control_has_the_minimum_touch_target_size(browser, full, address, name):
    page = visit(opened(browser, full, address, "phone light"), address, name)
    small = page.evaluate(TOO_SMALL, [TARGET, SMALL_TARGET])
    assert small == []

"""Whatever people and files are called, pages show it as text: a name fetches, links and runs nothing."""

import uuid
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
from conftest import draw
from contexts import Contexts
from person import open_page
from playwright.sync_api import expect
from served import Served, serving
from streamlit.testing.v1 import AppTest

from annotator.benchmark.harness.projects import draw_heatmaps, publish_run
from annotator.exchange.setup import set_up
from annotator.quality import audit
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.image_map import save_map
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.ui.access import context
from annotator.ui.parts import frame

HOST = "evil.example"
MARKUP = (
    f"![x](http://{HOST}/a.png)",
    f"<img src=http://{HOST}/b.png onerror=fetch('//{HOST}')>",
    f"[link](http://{HOST}) http://{HOST} www.{HOST} me@{HOST}",
    ":streamlit: :fox_face: :material/home: :red[red] $x^2$ `code` a -> b",
)
# What every object of JavaScript has.
OF_OBJECTS = ("constructor", "__proto__", "hasOwnProperty", "toString", "valueOf")
ANN, BEN = f"![n](//{HOST}/n.png)", f"<img src=//{HOST}/m.png>"
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
    "settings": "[data-testid=stSelectbox]",
    "classes": "[data-testid=stForm]",
    "agreement": "[data-testid=stVegaLiteChart]",
    "assignment": "[data-testid=stForm]",
    "people": "[data-testid=stMetric]",
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
    "settings",
    "classes",
)
SCRIPT = """
from annotator.ui.parts import frame
from annotator.ui.pages import {name} as one
with frame.errors_shown():
    one.page()
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory) -> Database:
    """A project in which everything that people and files can name is hostile; its run, map, audit and errors, too."""
    folder = tmp_path_factory.mktemp("hostile")
    chance = np.random.default_rng(0)
    for number in range(12):
        draw(folder / "photos" / f"![f](www.{HOST}) <img src=x>{number}.jpg", ("fox",), seed=number)
    (folder / "photos" / f"![broken](www.{HOST}).jpg").write_bytes(b"no image")
    (folder / "classes.txt").write_text("".join(f"{name}\t{name}\n" for name in (*MARKUP, *OF_OBJECTS)))
    project = folder / f"[p](www.{HOST})"
    set_up(project, images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(project)

    def say(annotator: str, image_id: int, class_id: int | None, state: int | None, action: str = "label", **more):
        one = Decision(str(uuid.uuid4()), action, annotator, "click", image_id, class_id, state, **more)
        assert not decisions.decide(db, [one]).refused

    for image_id in (1, 2, 3):
        for class_id in range(1, 10):
            say(ANN, image_id, class_id, 1 if (image_id + class_id) % 2 else -1)
    say(BEN, 1, 2, -1)
    say(BEN, 4, None, None, "flag", note=MARKUP[0] + MARKUP[1])
    for image_id in range(1, 13):
        say(BEN, image_id, None, None, "comment", note=MARKUP[1] + MARKUP[2])
    chances = chance.uniform(0.55, 0.99, (12, 9))
    draw_heatmaps(db, publish_run(db, chances), chances > 0)
    audit.draw(db, 81)
    # Answered of some classes only: the certificate has something to draw, and the others wait for an answer.
    for one in [one for one in audit.open_cells(db) if one.class_id > 4]:
        given = Decision(
            str(uuid.uuid4()), "label", ANN, "audit", one.image_id, one.class_id, 1 - 2 * (one.image_id % 2)
        )
        assert not decisions.decide(db, [given]).refused
    ids = np.array(sorted(image.id for image in images.all_images(db)))
    save_map(db.paths.map(DEFAULT_BACKBONE), ids, chance.random((12, 2)))
    heartbeat.note_error(db, MARKUP[0] + MARKUP[1])
    return db


def markdown_of(test: AppTest) -> Iterator[str]:
    """Every text of a page that Streamlit reads as Markdown; tables, code and our own HTML are none."""
    for element in test.main:
        if element.type in (
            "code",
            "html",
            "vega_lite_chart",
            "arrow_vega_lite_chart",
            "arrow_data_frame",
            "bidi_component",
        ):
            continue
        for _, value in element.proto.ListFields() if element.proto else ():
            if isinstance(value, str):
                yield value
            elif not hasattr(value, "ListFields"):
                yield from (one for one in (value if hasattr(value, "__iter__") else ()) if isinstance(one, str))


def test_what_is_escaped_stays_itself_and_is_found_by_nothing():
    for name in MARKUP:
        assert name not in frame.escaped(name)
        assert frame.escaped(name).replace("\\", "").replace(frame.JOINER, "") == name
    lines = frame.escaped("one\n    two\n\n# three\n===").split("\\\n")
    assert lines == ["one", "\u00a0" * 4 + "two", "", "\\# three", "\\=\\=\\="]
    for plain in ("fox", "it's 5 of 7, isn't it", "Größe; 100 %"):
        assert frame.escaped(plain) == plain


@pytest.mark.parametrize("name", STREAMLITS)
def test_no_markdown_of_a_page_holds_a_name_as_it_is(db, name):
    context.open_project(db.paths.project)
    test = AppTest.from_string(SCRIPT.format(name=name), default_timeout=30)
    test.session_state["name"] = ANN
    test.session_state["card_shown"] = True  # the data card on Export, which is computed in the background
    test.run()
    while name == "export" and not test.exception and test.get("progress"):
        test.run()
    assert not test.exception
    for text in markdown_of(test):
        assert not any(part in text for part in (*MARKUP, ANN, BEN, f"(www.{HOST})")), text


def test_an_error_shows_a_name_as_text(db):
    context.open_project(db.paths.project)
    test = AppTest.from_string(SCRIPT.format(name="classes"), default_timeout=30)
    test.session_state["name"] = ANN
    test.run()
    test.text_area(key="class_lines").input(MARKUP[0] + 200 * "x")
    next(one for one in test.button if one.label == "Add classes").click().run()
    assert frame.escaped(MARKUP[0]) in test.error[0].value


@pytest.fixture(scope="module")
def served(db) -> Iterator[Served]:
    with serving(db.paths.project) as served:
        yield served


FOUND = f"""() => {{
  const all = (root) => [...root.querySelectorAll("*")].flatMap((one) =>
    [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
  const found = all(document).filter((one) => [one.src, one.href, one.getAttribute("onerror")].some((text) =>
    text?.includes?.("{HOST}")) || one.alt === "Streamlit logo");
  return found.map((one) => one.outerHTML);
}}"""
DRAWN = """() => [...document.querySelectorAll("[data-testid=stVegaLiteChart]")].every((chart) =>
  chart.querySelector("svg text, canvas"))"""


@pytest.mark.browser
def test_no_page_fetches_links_or_loses_anything_by_a_name(browser: Contexts, served):
    page = open_page(browser, served, quote(ANN))
    foreign, troubles = [], []
    page.on(
        "request", lambda one: urlsplit(one.url).netloc in ("", f"127.0.0.1:{served.port}") or foreign.append(one.url)
    )
    page.on("console", lambda one: one.type == "error" and troubles.append(one.text))
    for name, there in PAGES.items():
        page.goto(f"{served.address}/{name}")
        expect(page.locator(there).first, f"{name}: {there}").to_be_visible(timeout=60_000)
        page.wait_for_load_state("networkidle")
        assert page.evaluate(FOUND) == [], name
        page.wait_for_function(DRAWN)
        if name in ("annotate", "review"):
            page.keyboard.press(";")
            page.locator(".history li", has_text=MARKUP[1]).first.wait_for()
            assert page.evaluate(FOUND) == [], name
            page.keyboard.press("Escape")
        assert foreign == [] and page.troubles == [] and troubles == [], name
    page.goto(f"{served.address}/classes")
    page.get_by_label("One class per line").fill("\n".join(f"image\n{name}{200 * 'x'}" for name in (*MARKUP, ANN)))
    page.get_by_role("button", name="Add classes").click()
    box = page.locator("[data-testid=stAlert]")
    box.wait_for()
    shown = box.inner_text().replace(frame.JOINER, "")
    assert all(name[:40] in shown for name in (*MARKUP, ANN)), shown
    assert page.evaluate(FOUND) == [] and foreign == [] and box.locator("a, img").count() == 0

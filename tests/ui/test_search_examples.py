"""Images found by what is no image of the project: a picture from elsewhere, a part of an image, words."""

import io
import json
import re
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import CLASSES, COLORS, draw
from harness.contexts import Contexts
from harness.person import open_page
from harness.served import APP, Served, serving, until
from harness.tiny_networks import save_colored_clip
from PIL import Image
from playwright.sync_api import Page, expect
from starlette.requests import Request

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.roles import Role
from annotator.snapshot import gallery_listing
from annotator.snapshot.filters import GalleryFilter
from annotator.snapshot.gallery_listing import Sorting
from annotator.snapshot.similarity import varied_images
from annotator.store.database.database import Database
from annotator.store.networks import configuration, search_examples
from annotator.store.people.members import Member
from annotator.ui.access.access_keys import build_request_headers
from annotator.ui.access.middleware import MEMBER_SCOPE_KEY
from annotator.ui.shared.guard import get_person_key
from annotator.worker.process import Worker
from spmll.zero_shot.prompts import BACKGROUND_PROMPTS, build_prompts, list_names

pytest.importorskip("open_clip")
IMAGES = 24
GRAY = {"grey": (170, 170, 170)}
WORDS = {"fox": "a red animal", "heron": "tall and blue", "deer": "brown stag"}  # no names of classes
TEXTS = {name: [*build_prompts(list_names(name)), *build_prompts([words])] for name, words in WORDS.items()} | {
    "grey": list(BACKGROUND_PROMPTS)
}


def shown(number: int) -> tuple[str, ...]:
    """What is drawn on an image: one class each, or nothing."""
    return () if number % 4 == 3 else (CLASSES[number % 4],)


@pytest.fixture(scope="module")
def analyzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose images are analyzed by a network that knows colors and texts of them; nothing is answered."""
    folder = tmp_path_factory.mktemp("search")
    for number in range(IMAGES):
        draw(folder / "photos" / f"{number:02}.jpg", shown(number), seed=number)
    (folder / "classes.txt").write_text("\n".join(CLASSES) + "\n")
    network = f"open_clip:local-dir:{save_colored_clip(folder / 'colours', COLORS | GRAY, TEXTS)}"
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(folder / "project")
    configuration.set_backbone(db, network)
    worker = Worker(db.paths.project)
    worker.image_embedder.embed_missing()
    worker.close()
    return folder / "project"


@pytest.fixture
def db(analyzed: Path) -> Database:
    return Database(analyzed)


def answered(db: Database) -> None:
    """Let a worker answer what is asked for."""
    worker = Worker(db.paths.project)
    while worker.search_answerer.answer_newest():
        pass
    worker.close()


def first(db: Database, key: str, count: int) -> list[str]:
    """The names of the images that the gallery shows first."""
    shown_first = gallery_listing.get_window(db, GalleryFilter(), Sorting("like", example=key), 0, count)
    return [tile.image.name for tile in shown_first.images]


def picture(names: tuple[str, ...], folder: Path, seed: int = 900) -> bytes:
    return draw(folder / "elsewhere.png", names, seed=seed).read_bytes()


def names_with(name: str) -> set[str]:
    return {f"{number:02}.jpg" for number in range(IMAGES) if name in shown(number)}


def test_search_by_a_copy_of_an_image_finds_that_image_and_does_not_store_the_copy(db: Database, analyzed: Path):
    content = (analyzed.parent / "photos/05.jpg").read_bytes()
    key = search_examples.request_picture(db, content, "copy.jpg")
    with pytest.raises(AnnotatorError, match=r"copy\.jpg is still being looked at\. No worker is running"):
        gallery_listing.get_window(db, GalleryFilter(), Sorting("like", example=key), 0, 1)
    answered(db)
    window = gallery_listing.get_window(db, GalleryFilter(), Sorting("like", example=key), 0, 3)
    assert window.images[0].image.name == "05.jpg" and window.measures[window.images[0].image.id] == "100%"
    assert not [path for path in db.paths.project.rglob("*") if path.is_file() and content in path.read_bytes()]


def test_uploaded_example_finds_images_of_the_same_class(db: Database, tmp_path: Path):
    for name in CLASSES:
        key = search_examples.request_picture(db, picture((name,), tmp_path), "elsewhere.png")
        answered(db)
        assert set(first(db, key, 6)) == names_with(name)


def test_text_search_finds_images_of_the_described_class(db: Database):
    for name, words in WORDS.items():
        key = search_examples.request_words(db, words)
        answered(db)
        assert set(first(db, key, 6)) == names_with(name)


def test_search_by_a_crop_of_an_image_finds_the_image_that_it_shows(tmp_path: Path, db: Database):
    beside = Image.new("RGB", (2 * 96, 72))
    for place, number in enumerate((4, 6)):
        beside.paste(Image.open(db.paths.project.parent / f"photos/{number:02}.jpg"), (96 * place, 0))
    (tmp_path / "photos").mkdir()
    beside.save(tmp_path / "photos/both.png")
    set_up_project(db.paths.project, images_folder=tmp_path / "photos")
    image_id = db.value("SELECT id FROM image WHERE name LIKE '%both.png'")
    for name, (left, right) in {"04.jpg": (0, 0.5), "06.jpg": (0.5, 1)}.items():
        key = search_examples.request_part(db, image_id, (left, 0, right, 1))
        answered(db)
        assert first(db, key, 1) == [name]
    with pytest.raises(AnnotatorError, match="hardly any area"):
        search_examples.request_part(db, image_id, (0.5, 0.2, 0.501, 0.9))


def test_search_example_embedded_by_another_backbone_is_refused(db: Database, tmp_path: Path):
    key = search_examples.request_picture(db, picture(("fox",), tmp_path), "elsewhere.png")
    answered(db)
    network = configuration.get_backbone(db)
    configuration.set_backbone(db, "efficientnet_lite0_320")
    try:
        with pytest.raises(AnnotatorError, match=r"was looked at by open_clip.*uses efficientnet_lite0_320 since"):
            search_examples.load_answer(db, key)
    finally:
        configuration.set_backbone(db, network)


def test_search_examples_and_unprocessed_uploads_are_deleted_after_their_maximum_age(db: Database, tmp_path: Path):
    key = search_examples.request_words(db, "a red animal")
    waiting = search_examples.request_picture(db, picture(("fox",), tmp_path), "elsewhere.png")
    asked = search_examples.load_request(db, waiting)
    assert asked is not None
    search_examples.delete_old(db, asked.at + search_examples.PICTURE_MAX_AGE_SECONDS + 60)
    with pytest.raises(AnnotatorError, match="not kept any longer"):
        search_examples.read_picture(db, asked)
    search_examples.delete_old(db, asked.at + search_examples.MAX_AGE_SECONDS + 60)
    assert search_examples.load_request(db, key) is None and search_examples.load_request(db, waiting) is None
    with pytest.raises(AnnotatorError, match="kept for 7 days"):
        search_examples.load_answer(db, key)


def test_person_with_too_many_waiting_searches_is_refused_and_delays_nobody_else(db: Database):
    with ThreadPoolExecutor(14) as pool:
        asked = [pool.submit(search_examples.request_words, db, f"search {number}", "Hasty") for number in range(14)]
        problems = [str(one.exception()) for one in asked if one.exception()]
    hasty = [one.result() for one in asked if not one.exception()]
    assert len(hasty) == search_examples.MAX_WAITING_REQUESTS_PER_PERSON == 4
    assert all(text.startswith("4 of your searches wait for the worker, and a person may have 4.") for text in problems)
    patient = search_examples.request_words(db, "tall and blue", "Patient")
    late = search_examples.load_waiting(db)[0]
    assert late.by == "Hasty" and [one.by for one in search_examples.load_waiting(db)][1] == "Patient"
    answered(db)
    assert all(search_examples.is_answered(db, key) for key in (*hasty, patient))
    assert search_examples.request_words(db, "a red animal", "Hasty")
    answered(db)


def test_worker_answers_the_newest_search_of_the_person_who_waits_longest(db: Database):
    first, second = (search_examples.request_words(db, f"early {number}", "Patient") for number in range(2))
    newest = [search_examples.request_words(db, f"late {number}", "Hasty") for number in range(4)]
    waiting = [one.key for one in search_examples.load_waiting(db)]
    assert waiting == [second, newest[3], first, newest[2], newest[1], newest[0]]
    answered(db)


def test_search_route_limits_each_person_and_a_renamed_member_stays_one_person(db: Database, analyzed: Path):
    def ask(served: Served, name: str) -> int:
        headers = build_request_headers(analyzed, served.address, name)
        request = urllib.request.Request(f"{served.address}/api/like", b'{"words": "a red animal"}', headers)
        try:
            return urllib.request.urlopen(request, timeout=120).status
        except urllib.error.HTTPError as error:
            return error.status

    with serving(analyzed) as served:
        assert [ask(served, "Hasty") for _ in range(6)] == [200, 200, 200, 200, 409, 409]
        assert ask(served, "Patient") == 200
    answered(db)
    member = Member(7, "Ann", Role.GUEST, None, "", True, 0.0, 0.0, 0.0)
    keys = {
        get_person_key(Request({"type": "http", MEMBER_SCOPE_KEY: replace(member, name=name)}), name)
        for name in ("Ann", "Anna")
    }
    assert len(keys) == 1


def refused(served: Served, path: str, content: bytes) -> str:
    """Why a route refuses a request."""
    request = urllib.request.Request(served.address + path, data=content, headers=served.headers)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(request, timeout=120)
    return json.loads(error.value.read())["error"]


@pytest.mark.slow
def test_invalid_search_example_is_refused_with_the_reason(db: Database, analyzed: Path, tmp_path: Path):
    bomb = io.BytesIO()
    Image.new("1", (30_000, 30_000)).save(bomb, "PNG")
    cut = picture(("fox",), tmp_path)[:400]
    with serving(analyzed) as served:
        path = "/api/like/picture?name=a.jpg"
        assert "a.jpg cannot be used as an example" in refused(served, path, b"no image")
        assert "a.jpg cannot be used as an example" in refused(served, path, cut)
        assert "a.jpg cannot be used as an example" in refused(served, path, bomb.getvalue())
        assert "larger than" in refused(served, path, b"\xff\xd8" + bytes(50_000_001))
        assert "There is no image 999" in refused(served, "/api/like", b'{"image": 999, "box": [0, 0, 1, 1]}')
        assert "no words" in refused(served, "/api/like", b'{"words": "  "}')
    assert not search_examples.load_waiting(db)


def test_varied_search_selection_takes_the_most_similar_images_and_then_different_ones(db: Database, monkeypatch):
    monkeypatch.setattr(varied_images, "LIKEST_IMAGES", 2)
    monkeypatch.setattr(varied_images, "SAMPLE_IMAGES", 6)
    key = search_examples.request_words(db, WORDS["heron"])
    answered(db)
    likest = gallery_listing.get_listing(db, GalleryFilter(), Sorting("like", example=key)).get_ids(0, 18)
    chosen = varied_images.select_varied(db, likest)
    assert chosen[:2] == likest[:2] and len(set(chosen)) == 6 and set(chosen) <= set(likest)
    shown_on = [shown(int(name[:2])) for name in names_of_images(db, chosen) if name != "both.png"]
    of_first = [shown(int(name[:2])) for name in names_of_images(db, likest[:6]) if name != "both.png"]
    assert len(set(shown_on)) > len(set(of_first)) == 1, "the first six are all herons"


def names_of_images(db: Database, ids: list[int]) -> list[str]:
    names = dict(db.tuples("SELECT id, name FROM image"))
    return [names[image_id].rpartition("/")[2] for image_id in ids]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.process
def test_class_without_examples_is_found_by_name_and_opened_in_a_grid(browser: Contexts, analyzed: Path):
    with serving(analyzed, APP) as served:
        page = open_page(browser, served, "Ann", "/gallery?open=heron")
        expect(page.locator(".thumb img").first).to_be_visible()
        page.keyboard.press("f")
        expect(page.get_by_label("By words")).to_have_value("heron")
        page.keyboard.press("Enter")
        expect(page.locator(".of-example")).to_have_text('"heron"', timeout=60_000)
        on_front(page, names_with("heron"))
        page.keyboard.press("v")
        expect(page).to_have_url(re.compile(r"grid\?selection=\w+&class=2"))
        expect(page.locator(".tile img").first).to_be_visible()
        expect(page.locator(".root.grid, .root").first).to_contain_text("heron")


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.process
def test_gallery_finds_images_by_text_dropped_image_and_drawn_part(
    browser: Contexts, db: Database, analyzed: Path, tmp_path: Path
):
    with serving(analyzed, APP) as served:
        until(lambda: served.post("/api/gallery", {"start": 0, "count": 1})["total"] >= IMAGES)
        page = open_page(browser, served, "Ann", "/gallery")
        expect(page.locator(".thumb img").first).to_be_visible()
        page.keyboard.press("f")
        page.get_by_label("By words").fill("tall and blue")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("sort=like&example=[0-9a-f]{16}$"), timeout=60_000)
        on_front(page, names_with("heron"))
        expect(page.locator(".of-example")).to_have_text('"tall and blue"')
        drop(page, picture(("fox",), tmp_path), "my fox.png")
        expect(page.locator(".of-example")).to_have_text("my fox.png", timeout=60_000)
        on_front(page, names_with("fox"))
        page.go_back()
        on_front(page, names_with("heron"))
        page.reload()
        on_front(page, names_with("heron"))
        page.locator(".thumb").filter(has_text="02.jpg").locator("img").click()
        page.keyboard.press("f")
        frame = page.locator(".example .drawn-on img")
        expect(frame).to_be_visible()
        box = frame.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.52 * box["width"], box["y"] + 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] - 1, steps=4)
        page.mouse.up()
        page.get_by_role("button", name="Find this part").click()
        expect(page.locator(".of-example")).to_have_text("part of 02.jpg", timeout=60_000)
        on_front(page, names_with("deer"))
        drop(page, b"no image", "note.jpg")
        expect(page.locator(".example .said")).to_contain_text("note.jpg cannot be used as an example")


def on_front(page: Page, names: set[str]) -> None:
    """The first images are these, in any order."""
    expect(page.locator(".thumb").first).to_contain_text(re.compile("|".join(map(re.escape, names))))
    front = [page.locator(f"#gallery-{place}").inner_text() for place in range(5)]
    assert all(any(name in text for name in names) for text in front), front


def drop(page: Page, content: bytes, name: str) -> None:
    """Drop a file on the page, as from the desktop."""
    transfer = page.evaluate_handle(
        """([bytes, name]) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([new Uint8Array(bytes)], name, {type: "image/png"}));
          return transfer;
        }""",
        [list(content), name],
    )
    page.locator(".root.gallery").dispatch_event("drop", {"dataTransfer": transfer})


@pytest.mark.slow
@pytest.mark.browser
def test_text_search_is_disabled_for_a_backbone_without_texts_and_names_one_with_texts(
    browser: Contexts, project: Path
):
    with serving(project) as served:
        page = open_page(browser, served, "Ann", "/gallery")
        expect(page.locator(".thumb img").first).to_be_visible()
        page.keyboard.press("f")
        expect(page.get_by_label("By words")).to_be_disabled()
        expect(page.locator("dialog.example")).to_contain_text("knows no texts. open_clip:PE-Core-T-16-384")
        page.keyboard.press("Escape")
        expect(page.locator("dialog.example")).to_be_hidden()
        drop(page, (project.parent / "photos/01.jpg").read_bytes(), "01.jpg")
        expect(page.locator(".example .said")).to_contain_text("No image is analyzed with efficientnet_lite0_320 yet")

"""Images that a browser sends to New project: a folder as a whole, or nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import draw
from harness.axe_findings import findings
from harness.child_processes import free_port
from harness.contexts import Contexts
from harness.served import until
from harness.start_page import Asking, all_below, at_home, made, send, wait_for_first_image
from playwright.sync_api import expect

from annotator.errors import AnnotatorError, DiskFull
from annotator.exchange.sources import fetch_folder
from annotator.ui.home import image_uploads
from annotator.ui.home.image_uploads import ImageUploads

pytestmark = pytest.mark.process


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    for number in range(5):
        draw(tmp_path / "stick" / f"{number}.jpg", (), seed=number)
    return sorted((tmp_path / "stick").iterdir())


@pytest.fixture
def person(tmp_path: Path) -> Path:
    (tmp_path / "ann").mkdir()
    return tmp_path / "ann"


@pytest.fixture
def link(person: Path) -> Iterator[str]:
    with at_home("--port", free_port(), HOME=person) as home:
        yield until(lambda: next((line for line in home.stdout if "?key=" in line), None)).strip()


@pytest.mark.slow
def test_dropped_images_become_a_project_and_a_cancelled_upload_leaves_no_files(
    person, images, link, browser: Contexts
):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(link)
    page.get_by_role("link", name="New project").click()
    page.route("**/start/api/image?*", lambda route: None)  # a network that takes its time
    page.locator("#images").set_input_files(images)
    expect(page.get_by_text("0 of 5 images sent")).to_be_visible()
    page.get_by_role("button", name="Cancel").press("Enter")
    expect(page.get_by_text("Cancelled. None of these images was kept.")).to_be_visible()
    assert all_below(person) == [] and not (person / "annotator-photos").exists()
    page.unroute("**/start/api/image?*")
    (images[0].parent / "notes.txt").write_text("x")
    page.locator("#images").set_input_files([*images[:2], images[0].parent / "notes.txt"])
    expect(page.get_by_text("2 images sent; 1 other file left out")).to_be_visible()
    dropped = page.evaluate_handle(
        """async (bytes) => {
          const list = new DataTransfer();
          const file = (name) => new File([new Uint8Array(bytes[name[0]])], name);
          for (const name of ["a.jpg", "b.jpg", "a.jpg"]) list.items.add(file(name));
          return list;
        }""",
        {"a": list(images[2].read_bytes()), "b": list(images[3].read_bytes())},
    )
    page.locator("h1").dispatch_event("drop", {"dataTransfer": dropped})
    expect(page.get_by_text("3 images sent")).to_be_visible()
    expect(page.get_by_text("3 images with subfolders: 3 jpg")).to_be_visible()
    expect(page.locator("#classes")).to_be_focused()
    assert findings(page) == []
    page.keyboard.type("fox, heron")
    page.locator("#name").fill("sent")
    page.locator("#person").fill("Ann")
    page.keyboard.press("Enter")
    wait_for_first_image(page)
    assert made(person, "sent").value("SELECT count(*) FROM image") == 2, "a.jpg twice is one image"
    first, second = sorted((person / "annotator-photos").iterdir())
    assert all_below(first) == ["0.jpg", "1.jpg"] and all_below(second) == ["a.jpg", "a~2.jpg", "b.jpg"]


def test_upload_confines_hostile_file_names_and_cancel_removes_the_files(person, images, link):
    asking, content = Asking(link), images[0].read_bytes()
    assert "Begin again" in send(asking, "none", "a.jpg", content)[1]
    batch = asking.ask("images_begin")["batch"]
    assert send(asking, batch, "a.jpg", content, token="")[0] == 401
    for name in (
        "../../evil.jpg",
        "..\\evil.jpg",
        "/etc/evil.jpg",
        ".hidden.png",
        "con.jpg",
        "a\nb.jpg",
        "x" * 900 + ".jpg",
    ):
        assert send(asking, batch, name, content)[0] == 200
    for name in ("a.txt", "a.jpg/..", "..", ".jpg", "a.html", "a.jpg.sh"):
        assert "is no image" in send(asking, batch, name, content)[1], name
    assert all(path.startswith("annotator-photos/.incoming.") for path in all_below(person))
    assert asking.ask("images_end", batch=batch, keep=False)["status"] == 200
    assert all_below(person) == [] and not (person / "annotator-photos").exists()
    assert "No image was sent" in asking.ask("images_end", batch=batch, keep=True)["error"]

    batch = asking.ask("images_begin")["batch"]
    send(asking, batch, "../a.jpg", content)
    path = asking.ask("images_end", batch=batch, keep=True)["path"]
    assert all_below(Path(path)) == ["a.jpg"] and asking.ask("look", path=path)["images"] == 1


@pytest.mark.slow
def test_uploads_of_two_tabs_are_never_mixed_and_do_not_delete_each_other(person, images, link):
    asking, (first, second, *_) = Asking(link), [image.read_bytes() for image in images]
    older = asking.ask("images_begin")["batch"]
    assert send(asking, older, "a.jpg", first)[0] == 200
    newer = asking.ask("images_begin")["batch"]
    assert send(asking, newer, "b.jpg", second)[0] == 200
    assert "others were sent from another page" in send(asking, older, "c.jpg", first)[1]
    assert asking.ask("images_end", batch=older, keep=False)["status"] == 200
    assert all_below(Path(asking.ask("images_end", batch=newer, keep=True)["path"])) == ["b.jpg"]
    assert len(all_below(person)) == 1


@pytest.mark.slow
def test_leaving_the_page_during_an_upload_deletes_the_images(person, images, link, browser: Contexts):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(link)
    page.get_by_role("link", name="New project").click()
    page.route("**/start/api/image?name=4.jpg*", lambda route: None)  # the last one takes its time
    page.locator("#images").set_input_files(images)
    expect(page.get_by_text("4 of 5 images sent")).to_be_visible()
    assert len(all_below(person)) == 4
    page.go_back()
    until(lambda: all_below(person) == [] and not (person / "annotator-photos").exists())


@pytest.mark.slow
def test_stopped_start_page_deletes_unfinished_uploads(person, images):
    with at_home("--port", free_port(), HOME=person) as home:
        asking = Asking(until(lambda: next((line for line in home.stdout if "?key=" in line), None)).strip())
        batch = asking.ask("images_begin")["batch"]
        assert send(asking, batch, "b.jpg", images[0].read_bytes())[0] == 200 and len(all_below(person)) == 1
    assert all_below(person) == []


@pytest.mark.slow
def test_oversized_uploads_are_refused_and_a_full_disk_is_reported(tmp_path, monkeypatch):
    batches = ImageUploads(tmp_path)
    batch = batches.begin_batch("ann")
    with pytest.raises(AnnotatorError, match=r"larger than .* choose it there"):
        batches.receive_image("ann", batch, "a.jpg", image_uploads.MAX_IMAGE_BYTES + 1)
    monkeypatch.setattr(image_uploads, "MAX_FILES_PER_BATCH", 1)
    first = batches.receive_image("ann", batch, "a.jpg", 3)
    with pytest.raises(AnnotatorError, match="may send 1 image with"):
        batches.receive_image("ann", batch, "b.jpg", 3)
    with pytest.raises(AnnotatorError, match="Begin again"):
        batches.receive_image("ben", batch, "b.jpg", 3)
    first.write(b"abc")
    first.discard()
    monkeypatch.setattr(image_uploads, "MAX_FILES_PER_BATCH", 9)
    monkeypatch.setattr(fetch_folder, "RESERVED_DISK_BYTES", 1 << 60)
    with pytest.raises(DiskFull, match="does not fit on the disk"):
        batches.receive_image("ann", batch, "c.jpg", 3).write(b"abc")
    batches.remove_unfinished()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "annotator-photos").write_text("a file is in the way")
    with pytest.raises(DiskFull, match="cannot be written"):
        batches.begin_batch("ann")

"""Makes the screenshots in this folder: a session on sample_data in a real Chromium, in both themes.

    python docs/screenshots.py

It labels 40 images as the truth says, waits for the model, decides a grid, and reviews ten suggestions on the way. A
second person answers some images in every class, and a part of an audit.
"""

import csv
import json
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from harness.browser import open_by_menu, open_chromium, sign_in_context
from harness.child_processes import free_port, is_listening, wait_for

from annotator.exchange.project_setup import set_up_project
from annotator.quality import audit_sampling
from annotator.records import ABSENT, PRESENT, Batch
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.runs import runs

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "sample_data"
KEYS = "1234567890qwertyuiopasdfghjklzxcvbnm"
TILE_KEYS = KEYS.replace("u", "")  # which is for unsure
LABELED, REVIEWED = 40, 10
WHOLE = 24  # images that the second person answers in every class
AUDITED = 0.7  # of the cells of an audit
WIDTH, HEIGHT = 1280, 800
PHONE = {"width": 390, "height": 844}
NOTHING_LOADS = """() => !document.querySelector("[data-testid=stSkeleton]") &&
  ![...document.querySelectorAll("[data-stale=true]")].length"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "scenes"
        set_up_project(project, images_folder=SAMPLE / "images", class_file=SAMPLE / "classes.txt")
        port = free_port()
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "annotator", "serve", str(project), "--port", str(port), "--no-browser"]
        )
        try:
            wait_for(lambda: is_listening(port), "the app")
            with open_chromium() as browser:
                for theme in ("light", "dark"):
                    session(browser, f"http://127.0.0.1:{port}", theme, Database(project))
        finally:
            server.terminate()
            server.wait(30)


def session(browser, address: str, theme: str, db: Database) -> None:
    """Work through the pages in one theme; the dark one goes on where the light one stopped."""
    truth = {row["image"]: row["labels"].split("|") for row in csv.DictReader((SAMPLE / "truth.csv").open())}
    names = [line.split("\t")[0].strip() for line in (SAMPLE / "classes.txt").read_text().splitlines()]
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme)
    sign_in_context(context, db.paths.project, address, "Ann")
    page = context.new_page()
    page.goto(f"{address}/annotate")
    picture = page.locator(".stage img").first
    picture.wait_for(timeout=60_000)
    for number in range(LABELED if theme == "light" else 2):
        picture.wait_for()
        labels = truth[picture.get_attribute("alt")]
        if number == LABELED - 1:  # the last one in full, so that the picture shows labels
            for name in labels[:-1]:
                page.keyboard.press(f"Shift+{KEYS[names.index(name)].upper()}")
            page.wait_for_timeout(300)
            shoot(page, f"annotate-{theme}")
        page.keyboard.press(KEYS[names.index(labels[-1])])
        page.wait_for_timeout(350)  # a quicker press is about the picture before
    if theme == "dark":
        shoot(page, f"annotate-{theme}")
    wait_for_run(db)
    open_by_menu(page, "Review")
    for _ in range(REVIEWED):
        page.locator(".suggestion.selected").wait_for(timeout=60_000)
        chosen = page.locator(".suggestion.selected .name").inner_text()
        page.keyboard.press("y" if chosen in truth[picture.get_attribute("alt")] else "n")
        page.wait_for_timeout(400)
    wait_for_run(db)
    open_by_menu(page, "Grid")
    decide_a_grid(page, truth)
    shoot(page, f"grid-{theme}")
    wait_for_run(db)
    open_by_menu(page, "Annotate")
    page.wait_for_timeout(1000)
    open_by_menu(page, "Review")
    show_a_right_suggestion(page, truth)
    shoot(page, f"review-{theme}")
    if theme == "light":
        somebody_else(db, truth)
        wait_for_run(db)
    open_by_menu(page, "Autopilot")
    mark_what_autopilot_asks(page, truth, names)
    shoot(page, f"autopilot-{theme}")
    open_by_menu(page, "Certificate")
    page.get_by_role("heading", name="By class").wait_for(timeout=60_000)
    page.wait_for_timeout(4000)
    shoot(page, f"certificate-{theme}")
    open_by_menu(page, "Map")
    page.get_by_text("160 images.").wait_for(timeout=300_000)  # it is made after the first training
    open_by_menu(page, "Import")
    preview_an_import(page, truth, names)
    shoot(page, f"import-{theme}")
    page.get_by_role("button", name="Cancel").click()
    for name in ("Map", "Progress", "Export", "Settings"):
        open_by_menu(page, name)
        page.wait_for_timeout(4000)
        shoot(page, f"{name.lower()}-{theme}")
    context.close()
    phone(browser, address, theme, db)


def shoot(page, name: str) -> None:
    """Save the page as it is when all of it is there, without the hints of a first visit."""
    settle(page)
    page.screenshot(path=ROOT / "docs" / f"{name}.png")


def settle(page) -> None:
    """Wait until all of the page is there, and dismiss the hints of a first visit, which lie over it."""
    page.wait_for_function(NOTHING_LOADS, timeout=60_000)
    while (button := page.get_by_role("button", name="Dismiss hint").first).is_visible():
        button.click()
        page.wait_for_timeout(300)


def decide_a_grid(page, truth: dict[str, list[str]]) -> None:
    """Decide one grid as the truth says, and mark what is wrong in the next."""
    for decided in (False, True):
        page.locator(".tile .mark").first.wait_for(timeout=60_000)
        page.wait_for_timeout(1500)
        mark(page, truth, page.locator(".class-name .name").inner_text())
        if not decided:
            page.keyboard.press("Enter")
            page.wait_for_timeout(500)


def mark(page, truth: dict[str, list[str]], name: str) -> None:
    """Mark the tiles on screen, of the class with this name, as the truth says."""
    for number, tile in enumerate(page.locator(".tiles .tile .mark").all()[: len(TILE_KEYS)]):
        image = tile.get_attribute("aria-label").rpartition(":")[0].split(",")[0]
        if (name in truth[image]) != (tile.get_attribute("aria-pressed") == "true"):
            page.keyboard.press(TILE_KEYS[number])
    page.wait_for_timeout(300)


def preview_an_import(page, truth: dict[str, list[str]], names: list[str]) -> None:
    """Upload a COCO file of another tool that names some classes in its own way, and see what it would change."""
    own = {"house": "House", "duck": "bird", "boat": "ship"}
    files = list(truth)[LABELED - 10 : LABELED + 50]
    shown = [(place, names.index(name)) for place, file in enumerate(files) for name in truth[file]]
    coco = {
        "images": [{"id": place, "file_name": file} for place, file in enumerate([*files, "holiday.jpg"])],
        "annotations": [{"id": n, "image_id": at, "category_id": of} for n, (at, of) in enumerate(shown)],
        "categories": [{"id": place, "name": own.get(name, name)} for place, name in enumerate(names)],
    }
    file = {"name": "instances.json", "mimeType": "application/json", "buffer": json.dumps(coco).encode()}
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("heading", name="Preview of instances.json").wait_for(timeout=60_000)
    page.wait_for_timeout(1500)


def mark_what_autopilot_asks(page, truth: dict[str, list[str]], names: list[str]) -> None:
    """Skip to a grid, and mark it."""
    for _ in range(20):
        page.locator("[data-kind]:not([data-kind=''])").wait_for(timeout=60_000)
        page.wait_for_timeout(1500)
        if page.locator("[data-kind=grid]").count():
            break
        page.keyboard.press(".")
    line = page.locator(".line").inner_text()
    mark(page, truth, next(name for name in names if f" show {name}?" in line))


def somebody_else(db: Database, truth: dict[str, list[str]]) -> None:
    """Answer some images in every class, and a part of an audit."""
    names = {class_.id: class_.name for class_ in classes.load_active_classes(db)}
    files = {image.id: image.name for image in images.load_all_images(db)}

    def answer(source: str, cells: list[tuple[int, int]], run: int | None, scores: list[float | None]) -> None:
        states = [PRESENT if names[class_id] in truth[files[image_id]] else ABSENT for image_id, class_id in cells]
        rows = [(*cell, state, score) for cell, state, score in zip(cells, states, scores, strict=True)]
        decisions.save(db, [Batch(str(uuid.uuid4()), "Bo", source, rows, run, 500 * len(rows))])

    for image_id in images.load_ids_in_working_order(db)[-WHOLE:].tolist():
        answer("suggestion", [(image_id, class_id) for class_id in names], None, [None] * len(names))
    wait_for_run(db)
    audit_sampling.draw_audit(db, seed=1)
    drawn = audit_sampling.load_open_cells(db)
    for class_id in names:
        asked = [cell for cell in drawn if cell.class_id == class_id]
        asked = asked[: round(AUDITED * len(asked))]
        answer("audit", [(cell.image_id, class_id) for cell in asked], asked[0].run_id, [cell.score for cell in asked])


def phone(browser, address: str, theme: str, db: Database) -> None:
    """The pages for fingers, as a phone shows them."""
    context = browser.new_context(viewport=PHONE, color_scheme=theme, has_touch=True, device_scale_factor=2)
    sign_in_context(context, db.paths.project, address, "Ann")
    page = context.new_page()
    page.goto(f"{address}/review")
    page.locator(".suggestion.selected").wait_for(timeout=60_000)
    page.wait_for_timeout(3000)
    shoot(page, f"phone-{theme}")
    context.close()


def show_a_right_suggestion(page, truth: dict[str, list[str]]) -> None:
    """Go on to an image whose first suggestion is true, and wait for its heat map."""
    for _ in range(20):
        page.locator(".suggestion.selected").wait_for(timeout=60_000)
        chosen = page.locator(".suggestion.selected .name").inner_text()
        if chosen in truth[page.locator(".stage img").first.get_attribute("alt")]:
            break
        page.keyboard.press(" ")
        page.wait_for_timeout(200)
    page.locator(".heatmap[data-class]").first.wait_for(timeout=60_000)
    page.wait_for_timeout(1500)


def wait_for_run(db: Database) -> None:
    """Until the model has seen everything that was decided."""
    for _ in range(3000):
        run = runs.load_current_run(db)
        newest = db.value("SELECT coalesce(max(id), 0) FROM decision")
        if run and run.last_decision_id >= newest:
            return
        time.sleep(0.2)
    raise SystemExit("The worker has not trained within ten minutes; see worker.log in the project.")


if __name__ == "__main__":
    main()

"""Makes the screenshots of the way in and of its end: the start page, New project, the menus, Autopilot's "Complete".

    python docs/screenshots_start.py

It is the home folder of somebody with four projects, whose images are those of sample_data. One is begun, one complete,
one untouched and one archived; New project is filled in for a fifth.
"""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.browser import open_chromium
from harness.child_processes import free_port
from screenshots import HEIGHT, ROOT, SAMPLE, WIDTH, settle, shoot, wait_for_run

from annotator.exchange.project_setup import set_up_project
from annotator.records import ABSENT, PRESENT, Batch
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.ui.home import hosted_projects

HOME = Path(tempfile.gettempdir()) / "ann"  # it is read on the pictures
PROJECTS = HOME / "annotator-projects"
BEGUN, COMPLETE, UNTOUCHED, ARCHIVED, NEW = "countryside", "harbor", "winter", "trial", "meadows"
IMAGES = {BEGUN: (0, 60), COMPLETE: (60, 100), UNTOUCHED: (100, 116), ARCHIVED: (116, 120), NEW: (120, 160)}
ANSWERED = {BEGUN: 24, COMPLETE: 40}  # images
TOP = 420  # pixels of a page of which only the top is of interest


def main() -> None:
    HOME.mkdir(mode=0o700)
    try:
        for name in IMAGES:
            make(name)
        with start_page() as link, open_chromium() as browser:
            context = browser.new_context()
            context.new_page().goto(link)
            let_in = context.storage_state()
            context.close()
            for theme in ("light", "dark"):
                session(browser, link.partition("/?")[0], let_in, theme)
    finally:
        shutil.rmtree(HOME)


def make(name: str) -> None:
    """Put images into a folder, and make a project of them, except for the new one."""
    folder = HOME / "pictures" / name
    folder.mkdir(parents=True)
    first, end = IMAGES[name]
    for image in sorted((SAMPLE / "images").iterdir())[first:end]:
        shutil.copy(image, folder)
    if name == NEW:
        shutil.copy(SAMPLE / "classes.txt", folder)
        return
    project = PROJECTS / name
    project.parent.mkdir(exist_ok=True)
    set_up_project(project, images_folder=folder, class_file=SAMPLE / "classes.txt")
    answer(Database(project), ANSWERED.get(name, 0))
    if name == ARCHIVED:
        Database(project).set_setting(hosted_projects.ARCHIVED_SETTING, True)


def answer(db: Database, many: int) -> None:
    """Answer every class of so many images as the truth says."""
    truth = {row["image"]: row["labels"].split("|") for row in csv.DictReader((SAMPLE / "truth.csv").open())}
    names = {class_.id: class_.name for class_ in classes.load_active_classes(db)}
    for image in images.load_all_images(db)[:many]:
        states = {class_id: PRESENT if name in truth[image.name] else ABSENT for class_id, name in names.items()}
        rows = [(image.id, class_id, state, None) for class_id, state in states.items()]
        assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Ann", "click", rows, None, 8000)]).refused


@contextmanager
def start_page() -> Iterator[str]:
    """Serve the projects; the address that works once."""
    words = ["home", "--no-browser", "--port", str(free_port())]
    env = os.environ | {"HOME": str(HOME), "ANNOTATOR_HOME": str(HOME / ".annotator")}
    command = [sys.executable, "-P", "-m", "annotator", *words]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert server.stdout
        yield next(line for line in server.stdout if "?key=" in line).strip()
    finally:
        server.terminate()
        server.wait(30)


def session(browser, address: str, let_in, theme: str) -> None:
    """Open the projects that are there, and fill in a new one."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme, storage_state=let_in)
    context.add_cookies([{"name": "annotator_name", "value": "Ann", "url": address}])
    page = context.new_page()
    open_project(page, address, COMPLETE)
    wait_for_run(Database(PROJECTS / COMPLETE))
    page.reload()
    page.get_by_role("heading", name="Complete").wait_for(timeout=120_000)
    page.wait_for_timeout(1000)
    shoot(page, f"finish-{theme}")
    open_project(page, address, BEGUN)
    wait_for_run(Database(PROJECTS / BEGUN))
    page.reload()
    page.locator(".stage img[data-image], .tile[data-image] img").first.wait_for(timeout=60_000)
    settle(page)
    page.get_by_test_id("stTopNavSection").filter(has_text="Label").click()
    page.get_by_role("menuitem", name="Grid").wait_for()
    page.wait_for_timeout(500)
    save_top(page, f"menus-{theme}")
    page.goto(address)
    page.get_by_role("link", name="New project").wait_for()
    page.wait_for_function("[...document.images].every((one) => one.naturalWidth || !one.offsetParent)")
    save_top(page, f"start-{theme}")
    page.get_by_role("link", name="New project").click()
    for folder in ("pictures", NEW):
        page.get_by_role("button", name=folder, exact=True).click()
    page.get_by_role("button", name="Use the 12 classes of classes.txt").click()
    page.get_by_text("12 classes: ").wait_for()
    page.wait_for_function("[...document.images].every((one) => one.naturalWidth)")
    shoot(page, f"new-project-{theme}")
    context.close()


def save_top(page, name: str) -> None:
    """Save the top of the page as it is."""
    page.screenshot(path=ROOT / "docs" / f"{name}.png", clip={"x": 0, "y": 0, "width": WIDTH, "height": TOP})


def open_project(page, address: str, name: str) -> None:
    """Open a project from the start page, which may wait until its server has started."""
    page.goto(f"{address}/open/{name}")
    page.locator(".who b").wait_for(timeout=120_000)


if __name__ == "__main__":
    main()

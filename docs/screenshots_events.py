"""Makes the screenshots of docs/events.md: sample_data as a camera trap would have taken it.

    python docs/screenshots_events.py

The set is that of `annotator bench events`. Half of its events are answered whole, which is enough for a model.
"""

import csv
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from harness.browser import open_chromium, sign_in_context
from harness.child_processes import free_port, is_listening, wait_for
from harness.event_scenes import Recipe, make_event_set
from screenshots import HEIGHT, SAMPLE, WIDTH, shoot

from annotator.benchmark.finish.sets import read_folder
from annotator.exchange.project_setup import set_up_project
from annotator.records import ABSENT, PRESENT, Batch
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.events import membership, project_events
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.runs import runs

RECIPE = Recipe(events=60, places=4)
SHOTS = (
    ("annotate", "event-strip", ".strip:not(.unknown) .frames button"),
    ("grid", "event-tiles", ".tiles .burst"),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        photos = read_folder("photos", "", SAMPLE / "images", SAMPLE / "truth.csv", Path(folder) / "photos")
        table = make_event_set(Path(folder) / "trap", photos, RECIPE)
        project = Path(folder) / "scenes"
        set_up_project(project, images_folder=Path(folder) / "trap", class_file=SAMPLE / "classes.txt")
        db = Database(project)
        project_events.find_and_save(db)
        answer(db, table)
        port = free_port()
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "annotator", "serve", str(project), "--port", str(port), "--no-browser"]
        )
        try:
            wait_for(lambda: is_listening(port), "the app")
            wait_for(lambda: (run := runs.load_current_run(db)) and run.last_decision_id, "a model", 300)
            with open_chromium() as browser:
                for theme in ("light", "dark"):
                    take(browser, f"http://127.0.0.1:{port}", theme, db)
        finally:
            server.terminate()
            server.wait(30)


def answer(db: Database, table: Path) -> None:
    """Answer every second event in every class, as the truth says."""
    truth = {row["image"]: row["labels"].split("|") for row in csv.DictReader(table.open())}
    ids = images.load_ids_by_name(db)
    event_of = membership.load_event_ids(db, list(ids.values()))
    for (name, image_id), event in zip(ids.items(), event_of.tolist(), strict=True):
        if list(dict.fromkeys(event_of.tolist())).index(event) % 2:
            cells = [
                (image_id, class_.id, PRESENT if class_.name in truth[name] else ABSENT, None)
                for class_ in classes.load_active_classes(db)
            ]
            decisions.save(db, [Batch(str(uuid.uuid4()), "Ann", "suggestion", cells)])


def take(browser, address: str, theme: str, db: Database) -> None:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme)
    sign_in_context(context, db.paths.project, address, "Ann")
    page = context.new_page()
    for path, name, wanted in SHOTS:
        page.goto(f"{address}/{path}")
        page.locator(wanted).first.wait_for(timeout=60_000)
        page.wait_for_timeout(2000)  # pictures of tiles, and the lists below
        shoot(page, f"{name}-{theme}")
    context.close()


if __name__ == "__main__":
    main()

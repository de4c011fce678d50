"""Makes the screenshots of docs/team.md: three people who answered some of sample_data, and a reviewer who settles.

    python docs/screenshots_team.py

The people are made up, and how often each of them errs; the pages, in a real Chromium and in both themes, are not. The
reviewer signs in at a login provider, as in a team that has one.
"""

import csv
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import numpy as np
from harness.browser import open_chromium
from harness.child_processes import free_port, is_listening, wait_for
from screenshots import HEIGHT, SAMPLE, WIDTH, shoot

from annotator.exchange.project_setup import set_up_project
from annotator.quality import audit_sampling
from annotator.records import ABSENT, PRESENT, Batch
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, image_overlap
from annotator.store.people import members

MISSES = {"Ann": 0.04, "Ben": 0.2, "Cleo": 0.1}  # share of what is there that they overlook
FALSE_ALARMS = 0.01
TWICE = 0.5  # share of the images that two people answer
USER = '{"sub": "dora", "name": "Dora", "email": "dora@example.org", "email_verified": true}'
SHOTS = (
    ("review?settle=1", "settling", ".stage img"),
    ("agreement", "agreement", "canvas, svg.marks"),
    ("people", "people", "table"),
    ("certificate", "certificate-team", "canvas, svg.marks"),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "scenes"
        set_up_project(project, images_folder=SAMPLE / "images", class_file=SAMPLE / "classes.txt")
        answer(Database(project))
        port, provider_port = free_port(), free_port()
        about = Path(folder) / "provider.toml"
        metadata = f"http://127.0.0.1:{provider_port}/.well-known/openid-configuration"
        about.write_text(f'client_id = "annotator"\nclient_secret = "s"\nserver_metadata_url = "{metadata}"\n')
        about.chmod(0o600)
        address = f"http://localhost:{port}"
        provider = str(Path(sys.executable).with_name("oidc-provider-mock"))
        words = ["--port", str(port), "--no-browser", "--auth", "oidc", "--oidc", str(about), "--url", address]
        processes = [
            subprocess.Popen([provider, "--port", str(provider_port), "--user-claims", USER]),
            subprocess.Popen([sys.executable, "-P", "-m", "annotator", "serve", str(project), *words]),
        ]
        try:
            wait_for(lambda: is_listening(port) and is_listening(provider_port), "the app and the provider")
            with open_chromium() as browser:
                for theme in ("light", "dark"):
                    session(browser, address, theme, Database(project))
        finally:
            for process in processes:
                process.terminate()
                process.wait(30)


def session(browser, address: str, theme: str, db: Database) -> None:
    """Sign in, and look at each page."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme)
    page = context.new_page()
    page.goto(address)
    page.get_by_role("link", name="Sign in").wait_for()
    shoot(page, f"login-{theme}")
    page.get_by_role("link", name="Sign in").click()
    page.get_by_role("button", name="dora").click()
    page.wait_for_url(f"{address}/**")
    members.set_role(db, "Dora", "reviewer", "the script")
    for place, name, there in SHOTS:
        wait_for(lambda place=place: page.goto(f"{address}/{place}").status == 200, f"the page {place}")
        page.locator(there).first.wait_for(timeout=60_000)
        page.wait_for_timeout(4000)
        shoot(page, f"{name}-{theme}")
    context.close()


def answer(db: Database) -> None:
    """Everybody's answers: of some images those of two people, of most of the others one's; and an audit."""
    rng = np.random.default_rng(2)
    truth = {row["image"]: row["labels"].split("|") for row in csv.DictReader((SAMPLE / "truth.csv").open())}
    names = {class_.id: class_.name for class_ in classes.load_active_classes(db)}
    files = {image.id: image.name for image in images.load_all_images(db)}

    def say(image_id: int, class_ids: list[int], who: str, source: str, careful: bool = False) -> None:
        shown = [names[class_id] in truth[files[image_id]] for class_id in class_ids]
        errs = [0 if careful else MISSES[who] if is_ else FALSE_ALARMS for is_ in shown]
        said = [is_ != (rng.random() < chance) for is_, chance in zip(shown, errs, strict=True)]
        states = [PRESENT if is_ else ABSENT for is_ in said]
        cells = [(image_id, class_id, state, None) for class_id, state in zip(class_ids, states, strict=True)]
        milliseconds = int(rng.integers(2500, 9000))
        assert not decisions.save(db, [Batch(str(uuid.uuid4()), who, source, cells, None, milliseconds)]).refused

    image_overlap.set_overlap(db, 2, TWICE)
    chosen = image_overlap.find_chosen_images(db, files)
    for image_id in files:
        first, second = rng.choice(list(MISSES), 2, replace=False, p=[0.5, 0.3, 0.2])
        if image_id in chosen:
            say(image_id, list(names), first, image_overlap.OVERLAP_SOURCE)
            say(image_id, list(names), second, image_overlap.OVERLAP_SOURCE)
        elif rng.random() < 0.6:
            say(image_id, list(names), first, "click")
    audit_sampling.draw_audit(db, seed=1)
    for cell in audit_sampling.load_open_cells(db):
        say(cell.image_id, [cell.class_id], "Ann", "audit", careful=True)


if __name__ == "__main__":
    main()

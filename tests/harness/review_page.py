"""Review in a browser: a served project with suggestions, and the answers given to them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from conftest import CLASSES, draw
from playwright.sync_api import Page

from annotator.exchange.project_setup import set_up_project
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from harness.contexts import Contexts
from harness.person import decided, open_page, wait_for_picture
from harness.projects import draw_heatmaps, publish_run
from harness.served import Served, serving

NAMES = ("fox", "heron", "deer", "owl", "hare")
IN_PAGE = """const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".stage"));
  const one = (selector) => host.shadowRoot.querySelector(selector);"""


@contextmanager
def reviewed(folder: Path, chances: np.ndarray, given: list[Decision] = ()) -> Iterator[Served]:
    """An app with a run of these probabilities (images, 5 classes) and its heat maps; no worker makes another."""
    for number in range(len(chances)):
        draw(folder / "photos" / f"{number:03}.jpg", CLASSES[number % 3 : number % 3 + 1], seed=number, size=(60, 40))
    (folder / "classes.txt").write_text("\n".join(NAMES) + "\n")
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(folder / "project")
    decisions.save(db, given)
    draw_heatmaps(db, publish_run(db, chances), chances > 0)
    with serving(db.paths.project) as served:
        yield served


def three_each(count: int) -> np.ndarray:
    """(count, 5) probabilities, three of every image's above a half, all of them different."""
    chance = np.random.default_rng(1)
    chances = chance.uniform(0.01, 0.3, (count, len(NAMES)))
    for row in chances:
        row[chance.choice(len(NAMES), 3, replace=False)] = chance.uniform(0.55, 0.99, 3)
    return chances


def open_review(browser: Contexts, served: Served, name: str, **more) -> Page:
    page = open_page(browser, served, name, "/review", **more)
    wait_for_picture(page)
    page.wait_for_load_state("networkidle")
    return page


def selected(page: Page) -> tuple[int, int]:
    """The image and the class a key would be about."""
    wait_for_picture(page)
    found = page.evaluate(
        f"""() => {{
          {IN_PAGE}
          return [one(".stage img[data-image]").dataset.image, one(".suggestion.selected").dataset.class];
        }}"""
    )
    return int(found[0]), int(found[1])


def answers(served: Served, name: str) -> list[list[int]]:
    """What this person answered, in order: image, class, state."""
    return [
        [row["image_id"], row["class_id"], row["state"]] for row in decided(served, name) if row["action"] == "label"
    ]

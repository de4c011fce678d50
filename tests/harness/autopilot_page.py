"""Autopilot in a browser: a served project with given probabilities, and its actions on screen."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from conftest import CLASSES, draw
from playwright.sync_api import Page

from annotator.exchange.project_setup import set_up_project
from annotator.quality import audit_sampling
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from harness.contexts import Contexts
from harness.grids import DRAWN, KIND, shown
from harness.person import looked_around, on_screen, open_page, wait_until_fetched
from harness.projects import publish_run
from harness.served import Served, serving, until


@contextmanager
def flown(
    folder: Path, names: Sequence[str], chances: np.ndarray | None, *, complete: int = 0, drawn: int = 0
) -> Iterator[Served]:
    """An app with these probabilities (images, classes), None for no model, and no worker that makes others.

    complete: images that somebody has answered in every class; drawn: cells of an audit that waits
    """
    for number in range(60 if chances is None else len(chances)):
        draw(folder / "photos" / f"{number:03}.jpg", CLASSES[number % 3 : number % 3 + 1], seed=number, size=(60, 40))
    (folder / "classes.txt").write_text("\n".join(names) + "\n")
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(folder / "project")
    for image in images.load_all_images(db)[-complete:] if complete else []:
        decisions.save(db, [Decision(str(uuid.uuid4()), "done", "Bob", "done", image_id=image.id)])
    if chances is not None:
        publish_run(db, chances)
    if drawn:
        audit_sampling.draw_audit(db, drawn, seed=1)
    with serving(db.paths.project) as served:
        yield served


def sure_of_the_fox(count: int) -> np.ndarray:
    """(count, 3): the fox is on nearly all images, of the others little is known."""
    chances = np.full((count, 3), 0.1)
    chances[:, 0] = 0.98 - np.arange(count) / 1000
    return chances


def fly(browser: Contexts, served: Served, name: str, **more) -> Page:
    page = open_page(browser, served, name, "/autopilot", **more)
    until(lambda: page.evaluate(KIND))
    wait_until_fetched(page)
    page.evaluate(DRAWN)
    return page


def on(page: Page) -> tuple[str, str]:
    """The kind of what is on screen, and what it is: the grid's id, or the image's."""
    kind = until(lambda: page.evaluate(KIND))
    return kind, shown(page)["id"] if kind in ("grid", "audit") else str(on_screen(page))


def go_on(page: Page, key: str = "Enter") -> tuple[str, str]:
    """What this key brings, once it has been drawn."""
    before = on(page)
    looked_around(page)
    page.keyboard.press(key)
    now = until(lambda: (now := on(page)) != before and now)
    page.evaluate(DRAWN)
    return now


def go_to(page: Page, kind: str) -> None:
    """Answer what comes until something of this kind is on screen."""
    for _ in range(40):
        if on(page)[0] == kind:
            return
        go_on(page)
    raise AssertionError(f"no {kind} in 40 actions")

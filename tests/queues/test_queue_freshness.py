"""What the model learns reaches pages that are open: behind what a person sees, and never under their hands."""

import numpy as np
import pytest
from harness.grids import open_grid
from harness.grids import shown as grid_shown
from harness.person import looked_around, on_screen, wait_for_another
from harness.review_page import NAMES, open_review, reviewed
from harness.served import Served, until

from annotator.snapshot import rankings
from annotator.snapshot.run_predictions import open_arrays
from annotator.store.database import arrays
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.runs import runs

pytestmark = pytest.mark.browser

COUNT = 80


@pytest.fixture
def falling(tmp_path):
    """An app whose run finds the first class likelier, the smaller an image's id; no worker makes another."""
    chances = np.full((COUNT, len(NAMES)), 0.01)
    chances[:, 0] = np.linspace(0.98, 0.6, COUNT)
    with reviewed(tmp_path, chances) as served:
        yield served


def turn_over(served: Served) -> None:
    """Publish a version in which the order is the other way round, as the worker does."""
    db = Database(served.project)
    image_ids, before = open_arrays(db, 1)
    chances, newest = np.array(before), decisions.get_newest_decision_id(db)
    chances[:, 0] = chances[::-1, 0]
    folder = db.paths.run(1, 1)
    arrays.save_array(folder / "probabilities.npy", chances)
    rankings.save(folder, rankings.build(db, newest, image_ids, np.arange(1, len(NAMES) + 1), chances))
    runs.publish_version(db, 1, 1, newest)


def asks(page) -> list[dict]:
    """The requests for work from now on, as they are answered."""
    seen = []
    keep = lambda answer: answer.url.endswith(("/api/work", "/api/grid")) and seen.append(answer.json())  # noqa: E731
    page.on("response", keep)
    return seen


def renewed(page, answers) -> bool:
    page.evaluate("0")  # lets the page's events in
    return any(answer["fresh"] == "1.1" and answer["items"] for answer in answers)


@pytest.mark.slow
def test_open_review_page_applies_new_predictions_after_its_preloaded_images(browser, falling):
    page = open_review(browser, falling, "Ann")
    first, answers = on_screen(page), asks(page)
    turn_over(falling)
    page.keyboard.press(" ")
    wait_for_another(page, first)
    second = on_screen(page)
    until(lambda: renewed(page, answers))
    assert on_screen(page) == second, "nothing moves under their hands"
    seen = [first, second]
    for _ in range(6):
        page.keyboard.press(" ")
        wait_for_another(page, seen[-1])
        seen.append(on_screen(page))
    assert seen == [1, 2, 3, 4, 80, 79, 78, 77]
    page.keyboard.press("ArrowLeft")
    wait_for_another(page, 77)
    assert on_screen(page) == 78, "what was seen stays where it was"
    assert page.troubles == []


@pytest.mark.slow
def test_open_grid_keeps_prefetched_grids_and_uses_new_predictions_for_later_ones(browser, falling):
    page = open_grid(browser, falling, "Bea", "/grid")
    answers, grids = asks(page), [grid_shown(page)]
    turn_over(falling)
    for _ in range(3):
        looked_around(page)
        page.keyboard.press("Enter")
        grids.append(until(lambda: (now := grid_shown(page))["id"] != grids[-1]["id"] and now))
        if len(grids) == 2:
            until(lambda: renewed(page, answers))
            assert grid_shown(page) == grids[-1]
    tiles = [[image for image, _ in grid["tiles"]] for grid in grids]
    assert tiles[0] == list(range(1, 25)) and tiles[1] == list(range(25, 49)) and tiles[2] == list(range(49, 73))
    assert tiles[3] == list(range(80, 72, -1))
    assert page.troubles == []

"""Two people label 24 drawn photos through every page, slips and all; all that is stored is what they meant."""

import numpy as np
import pytest
from conftest import CLASSES
from harness.hour import work_through
from harness.projects import publish_run
from harness.served import serving

from annotator.store.database.database import Database
from annotator.store.images import images


@pytest.mark.browser
@pytest.mark.slow  # each page has tests of its own; this one goes through all of them in turn
def test_an_hour_of_work_on_every_page_stores_exactly_the_given_answers(browser, project):
    db = Database(project)
    labels = {}
    for image in images.load_all_images(db):
        number = int(image.name.removeprefix("deep/").split(".")[0])
        labels[image.name] = {name for bit, name in enumerate(CLASSES) if (number + 1) >> bit & 1}
    shown = np.array([[name in labels[image.name] for name in CLASSES] for image in images.load_all_images(db)])
    publish_run(db, np.where(shown, 0.8, 0.3) - np.random.default_rng(0).random(shown.shape) * 0.25)
    with serving(project) as served:
        book = work_through(browser, served, labels, seed=0, say=print)
        book.check(project)
    assert {"annotate", "grid", "review", "autopilot"} <= set(book.actions)
    assert book.actions["pressed twice"] > 3

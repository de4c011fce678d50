"""Changes that belong together are in one transaction, so that no kill parts them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from annotator.store.classes import name_texts
from annotator.store.database.database import Database
from annotator.store.images import band_choice, near_duplicate_groups, registration
from annotator.store.runs import prediction_sources
from annotator.store.runs.prediction_sources import CLASS_NAMES_SOURCE


@contextmanager
def commits(db: Database) -> Iterator[list[str]]:
    """The COMMIT statements of this thread."""
    found: list[str] = []
    db.sql.conn.set_trace_callback(lambda text: found.append(text) if text == "COMMIT" else None)
    yield found
    db.sql.conn.set_trace_callback(None)


def delete_groups(db: Database) -> None:
    near_duplicate_groups.save_groups(db, np.array([1, 2]), np.array([1, 1]))
    db.set_setting(near_duplicate_groups.GROUPED_SETTING, 7)
    with commits(db) as found:
        near_duplicate_groups.delete_groups(db)
    assert len(found) == 1 and db.get_setting(near_duplicate_groups.GROUPED_SETTING) == 0


def disable_names(db: Database) -> None:
    scores = np.array([1]), np.array([1]), np.array([[0.9]])
    prediction_sources.add(db, CLASS_NAMES_SOURCE, "probability", "net", *scores[:2], lambda: iter([scores]))
    name_texts.save_guess(db, name_texts.NameGuess("x", 1))
    with commits(db) as found:
        name_texts.set_enabled(db, False)
    assert len(found) == 1
    assert not name_texts.is_on(db) and not name_texts.has_source(db) and not name_texts.load_newest_guess(db).images


def choose_bands(db: Database) -> None:
    with db.writing() as sql:
        sql.execute("UPDATE image SET bands = '5:1,2,3' WHERE id = 1")
    before = db.get_setting("registrations")
    with commits(db) as found:
        assert band_choice.save_bands(db, (3, 2, 1), 5) == [1]
    assert len(found) == 1 and db.get_setting("registrations") == before + 1


@pytest.mark.parametrize("change", [delete_groups, disable_names, choose_bands])
def test_change_is_one_transaction(db, change: Callable[[Database], None]):
    change(db)


def test_registrations_by_several_threads_are_all_counted(db):
    before = db.get_setting("registrations")

    def increment() -> None:
        for _ in range(50):
            registration.increment_registrations(db)

    threads = [threading.Thread(target=increment) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.get_setting("registrations") == before + 200

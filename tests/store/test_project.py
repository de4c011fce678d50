"""An open project owns its database, its settings and its caches; two in one process share nothing."""

import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest
from harness.published_runs import publish

from annotator import open
from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.suggestions import find_missing_positives
from annotator.store.database.caches import Caches
from annotator.store.networks import configuration


@pytest.fixture
def two(tmp_path, photos, class_file):
    """Two projects of the same images and classes; run 1 of the first is surest of image 1, that of the second of
    image 2."""
    opened = []
    for number in (1, 2):
        set_up_project(tmp_path / f"p{number}", images_folder=photos, class_file=class_file)
        project = open(tmp_path / f"p{number}")
        probabilities = np.full((24, 3), 0.1)
        probabilities[number - 1, 0] = 0.9
        publish(project.db, probabilities)
        opened.append(project)
    yield opened
    for project in opened:
        project.close()


def best(project) -> int:
    return find_missing_positives(project.db, limit=1)[0].image_id


def test_two_open_projects_share_no_caches_and_closing_one_frees_only_its_own(two):
    first, second = two
    assert [best(project) for project in (first, second, first)] == [1, 2, 1]
    assert first.db.caches.count() == second.db.caches.count() > 0
    first.close()
    assert first.db.caches.count() == 0 < second.db.caches.count()
    assert best(second) == 2
    with pytest.raises(AnnotatorError, match="was closed"):
        best(first)
    first.close()


def test_closing_a_project_closes_the_connections_of_all_threads(two):
    connections, (first, _) = [two[0].db.sql], two
    thread = threading.Thread(target=lambda: connections.append(first.db.sql))
    thread.start()
    thread.join()
    assert connections[0] is not connections[1]
    first.close()
    for connection in connections:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_project_is_a_context_manager_with_path_and_configuration(two):
    first, _ = two
    configuration.set_method(first.db, "em_apl", {"alpha": 0.3})
    with open(str(first.path)) as project:
        assert project.path == first.path and repr(project) == f"annotator.open({str(first.path)!r})"
        now = project.configuration
        assert (now.method, now.backbone, now.parameters) == ("em_apl", DEFAULT_BACKBONE, {"alpha": 0.3})
    with pytest.raises(AnnotatorError, match="was closed"):
        _ = project.configuration


def test_opening_an_empty_folder_as_a_project_raises(tmp_path):
    with pytest.raises(AnnotatorError, match="There is no project"):
        open(tmp_path)


@pytest.mark.process
def test_importing_the_package_does_not_load_numpy_torch_or_sqlite3():
    said = (
        "import sys, annotator; annotator.open; print([n for n in sys.modules if n in ('numpy', 'torch', 'sqlite3')])"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_cache_computes_a_value_once_across_threads_and_again_after_an_error():
    caches, made, go = Caches(), [], threading.Barrier(8)

    def ask():
        go.wait()
        caches.get("table", "key", lambda: made.append(1) or len(made), 4)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    with pytest.raises(ZeroDivisionError):
        caches.get("table", "other", lambda: 1 / 0, 4)
    assert caches.get("table", "other", lambda: "sound", 4) == "sound"


def test_cache_table_keeps_the_most_recently_used_values():
    caches = Caches()
    for key in (1, 2, 1, 3):
        caches.get("table", key, lambda key=key: key, 2)
    assert caches.count() == 2
    assert caches.get("table", 1, lambda: "made again", 2) == 1
    assert caches.get("table", 2, lambda: "made again", 2) == "made again"

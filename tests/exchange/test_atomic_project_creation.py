"""Making a project is all or nothing: a kill, an error or a full disk leaves none, and the next attempt makes it."""

import signal
import subprocess
import sys

import pytest
from conftest import draw
from harness.short_forms import mark_slow_after

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.images import images


def names(db: Database) -> dict[int, str]:
    return {image.id: image.name for image in images.load_all_images(db)}


KILLED = """
import os, sys
from pathlib import Path
from annotator.exchange.project_setup import set_up_project
from annotator.store.classes import classes
from annotator.store.images import registration
registration.FILES_PER_TRANSACTION = 5
project, photos, listed, when = sys.argv[1:]
end = lambda *_: os.kill(os.getpid(), 9)
if when == "classes":
    classes.find_name_warnings = end
set_up_project(Path(project), images_folder=Path(photos), class_file=Path(listed),
    progress=lambda number, of: number == int(when) and end() if when.isdigit() else None)
"""


@pytest.mark.parametrize("when", mark_slow_after(2, ["1", "13", "24", "classes"]))
@pytest.mark.process
def test_killed_init_leaves_no_project_and_the_next_init_creates_a_complete_one(tmp_path, photos, class_file, when):
    project = tmp_path / "project"
    killed = subprocess.run([sys.executable, "-c", KILLED, project, photos, class_file, when], check=False)
    assert killed.returncode == -signal.SIGKILL
    with pytest.raises(AnnotatorError, match="no project"):
        Database(project)
    (tmp_path / "other.txt").write_text("owl\n")
    done = set_up_project(project, images_folder=photos, class_file=tmp_path / "other.txt")
    db = Database(project)
    assert done.registered.added + done.registered.known == len(names(db)) == 24
    assert done.registered.known == {"1": 0, "13": 10}.get(when, 20 if when == "24" else 24), "looked into once"
    assert done.classes_added == ["owl"]
    assert [path.name for path in project.iterdir() if not path.name.startswith("project.db-")] == ["project.db"]


@pytest.mark.process
def test_killed_init_with_another_folder_adds_no_images_to_the_project(tmp_path, photos, class_file):
    project = tmp_path / "project"
    subprocess.run([sys.executable, "-c", KILLED, project, photos, class_file, "13"], check=False)
    draw(tmp_path / "few" / "one.jpg", seed=70)
    set_up_project(project, images_folder=tmp_path / "few")
    assert set(names(Database(project)).values()) == {"one.jpg"}


FULL = """
import resource, sys
from pathlib import Path
from annotator.exchange.project_setup import set_up_project
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
set_up_project(Path(sys.argv[1]), images_folder=Path(sys.argv[2]))
"""


@pytest.mark.process
def test_full_disk_during_init_leaves_no_project(tmp_path, photos):
    full = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / "project", photos], check=False, capture_output=True, text=True
    )
    assert "DiskFull" in full.stderr
    assert not (tmp_path / "project").exists()
    assert set_up_project(tmp_path / "project", images_folder=photos).registered.added == 24


def test_init_completes_a_project_that_an_older_version_left_half_created(tmp_path, photos, class_file):
    project = tmp_path / "project"
    Database(project, create=True)
    done = set_up_project(project, images_folder=photos, class_file=class_file)
    assert (done.registered.added, len(done.classes_added)) == (24, 3)

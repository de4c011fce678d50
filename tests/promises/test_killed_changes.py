"""Killed at any moment, a change of classes, relations or an event is made or not; adding a folder goes on."""

import json
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from conftest import CLASSES, draw
from harness.class_edits import DEER, FOX, answer, done, everything, labels

from annotator.exchange.project_setup import add_folder
from annotator.store.database.database import Database
from annotator.store.events import project_events
from annotator.store.images import excluded_images, images
from annotator.store.upkeep import consistency

# Forks a process for each line of its input, which then does what the line says; what it needs is imported before. From
# its first write on the process counts the steps of SQLite, 20 instructions each, and kills itself at the given one.
FORKS = """
import json, os, sys
from contextlib import contextmanager
from pathlib import Path
from annotator.__main__ import main
from annotator.cli import app
from annotator.records import Decision
from annotator.store.events.event_answers import EventBatch
from annotator.store.classes import class_changes
from annotator.store.labels import project_counts as overview
from annotator.store.labels import decisions
from annotator.store.images import registration
from annotator.store.database.database import Database
from annotator.ui.pages.images.image_adder import get_image_adder

registration.FILES_PER_TRANSACTION = 5
writing, steps, last = Database.writing, 0, 0

def step():
    global steps
    steps += 1
    if steps == last:
        os.kill(os.getpid(), 9)

@contextmanager
def counted(self, **more):
    with writing(self, **more) as sql:
        sql.conn.set_progress_handler(step, 20)
        yield sql

Database.writing = counted

def work(words):
    if words[0] == "add":
        added = get_image_adder(Database(Path(words[1])))
        added.start([Path(words[2])])
        added.wait()
        return
    if words[0] == "answer event":
        batch = EventBatch(words[2], "Ann", "event", (), copies=json.loads(words[3]))
        assert decisions.save(Database(Path(words[1])), [batch]).saved
        return
    if words[0] == "decide":
        given = [Decision(**one) for one in json.loads(words[2])]
        assert len(decisions.save(Database(Path(words[1])), given).saved) == len(given)
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.argv = ["annotator", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end

for line in sys.stdin:
    last, *words = json.loads(line)
    reading, told = os.pipe()
    pid = os.fork()
    if not pid:
        work(words)
        os.write(told, str(steps).encode())
        os._exit(0)
    os.close(told)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps([status, os.read(reading, 20).decode()]), flush=True)
    os.close(reading)
"""


@pytest.fixture
def steps_of(processes) -> Callable[..., int]:
    """Does something in a process of its own and returns in how many steps; `killed_at` a step, it returns nothing."""
    started = subprocess.Popen([sys.executable, "-P", "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    processes.append(started)

    def run(*words: object, killed_at: int = 0) -> int:
        assert started.stdin and started.stdout
        started.stdin.write(json.dumps([killed_at, *map(str, words)]).encode() + b"\n")
        started.stdin.flush()
        status, steps = json.loads(started.stdout.readline())
        assert status == (-signal.SIGKILL if killed_at else 0)
        return int(steps or 0)

    return run


def files(db: Database) -> list[tuple[str, str]]:
    return db.tuples("SELECT f.path, i.name FROM file f JOIN image i ON i.id = f.image_id ORDER BY f.path")


def test_adding_a_folder_resumes_after_kills_and_adds_each_image_once(project, steps_of, tmp_path):
    more = tmp_path / "more"
    for number in range(40):
        draw(more / f"{number % 3}" / f"{number:02}.jpg", CLASSES[number % 3 : number % 3 + 1], 100 + number, (32, 24))
    db, rng = Database(project), random.Random(5)
    answer(db, 3, FOX, 1)
    before, counts = everything(db), [len(images.load_all_images(db))]
    for _ in range(6):
        steps_of("add", project, more, killed_at=rng.randint(2, 150))
        db = Database(project)
        counts.append(len(images.load_all_images(db)))
        assert consistency.find_problems(db) == []
    assert counts == sorted(counts) and counts[0] < counts[-1] < 64, "each went on where the one before was killed"
    registered = add_folder(db, more)
    assert (registered.added, registered.known) == (64 - counts[-1], counts[-1] - 24)
    hashes = [image.sha256 for image in images.load_all_images(db)]
    assert len(hashes) == len(set(hashes)) == 64, "no image is doubled"
    assert len(files(db)) == 64 and len({name for _, name in files(db)}) == 64
    assert everything(db) | {"stages": []} == before | {"stages": []}
    assert steps_of("add", project, more) and len(images.load_all_images(db)) == 64


def of_events(project) -> dict[str, list]:
    db = Database(project)
    found = {
        "events": db.tuples("SELECT * FROM image_event ORDER BY image_id"),
        "edits": db.tuples("SELECT id, action FROM event_edit ORDER BY id"),
        "follow from": db.tuples("SELECT value FROM setting WHERE key = 'events_found'"),
    }
    db.close()
    return found


@pytest.mark.slow
def test_killed_event_search_or_change_leaves_the_events_unchanged(project, steps_of):
    db = Database(project)
    with db.writing() as sql:  # a photo each 10 seconds
        sql.execute("UPDATE image SET captured_at = 1.7e9 + 10 * id")
    db.close()
    rng, copy = random.Random(2), project.with_name("copy")
    for change in ([], ["--split", "04.jpg"], ["--gap", "5s"], ["--shift", "deep=+1h"], ["--undo"], ["--gap", "1min"]):
        before = of_events(project)
        shutil.copytree(project, copy)
        steps = steps_of("events", project, *change)
        after = of_events(project)
        shutil.rmtree(project)
        copy.rename(project)
        for killed_at in sorted(rng.sample(range(1, steps), 2)):
            steps_of("events", project, *change, killed_at=killed_at)
            assert of_events(project) == before, f"{change} killed at step {killed_at} of {steps}"
        steps_of("events", project, *change)
        assert of_events(project) == after != before


def of_relations(project) -> dict[str, list]:
    db = Database(project)
    found = {
        "edits": db.tuples("SELECT id, action FROM relation_edit ORDER BY id"),
        "implications": db.tuples("SELECT * FROM implication"),
        "implied": db.tuples("SELECT image_id, class_id, state, decision_id FROM accepted ORDER BY 1, 2"),
        "labels": db.tuples("SELECT * FROM label ORDER BY image_id, class_id"),
        "stages": db.tuples("SELECT id, stage FROM image ORDER BY id"),
    }
    assert consistency.find_problems(db) == []
    db.close()
    return found


@pytest.mark.slow
def test_killed_relation_change_keeps_relations_and_implied_labels_all_or_nothing(project, steps_of):
    db = Database(project)
    for image in range(1, 9):
        answer(db, image, (FOX, DEER)[image % 2], 1)
        if image > 4:
            done(db, image)
    db.close()
    rng, copy = random.Random(3), project.with_name("copy")
    for change in (["--is-a", "fox=heron"], ["--exactly-one", "kind=fox,deer"], ["--remove", "1"], ["--undo"]):
        before = of_relations(project)
        shutil.copytree(project, copy)
        steps = steps_of("relations", project, *change)
        after = of_relations(project)
        assert after != before
        for killed_at in sorted(rng.sample(range(1, steps), 3)):
            shutil.rmtree(project)
            shutil.copytree(copy, project)
            steps_of("relations", project, *change, killed_at=killed_at)
            # After its transaction the command still reads what it prints.
            assert of_relations(project) in (before, after), f"{change} killed at step {killed_at} of {steps}"
        shutil.rmtree(project)
        copy.rename(project)
        steps_of("relations", project, *change)
        assert of_relations(project) == after


def test_killed_event_answers_store_nothing_and_resent_answers_are_stored_once(project, steps_of):
    db = Database(project)
    with db.writing() as sql:  # a photo each 10 seconds: one event of all but the image in a folder
        sql.execute("UPDATE image SET captured_at = 1.7e9 + 10 * id")
    project_events.find_and_save(db)
    front = 3
    answer(db, front, FOX, 1)
    answer(db, front, DEER, -1)
    answer(db, 5, FOX, -1, by="Bob")
    before = everything(db)
    db.close()
    copies = [(image, class_id, state, front) for image in range(4, 12) for class_id, state in ((FOX, 1), (DEER, -1))]
    name, copy = "0123-an-event", project.with_name("copy")
    send = ["answer event", project, name, json.dumps(copies)]
    shutil.copytree(project, copy)
    steps = steps_of(*send)
    shutil.rmtree(project)
    copy.rename(project)
    for killed_at in sorted(random.Random(4).sample(range(1, steps), 5)):
        steps_of(*send, killed_at=killed_at)
        db = Database(project)
        assert everything(db) == before and not db.tuples("SELECT * FROM event_answer"), (
            f"killed at {killed_at} of {steps}"
        )
        assert consistency.find_problems(db) == []
        db.close()
    for _ in range(2):
        steps_of(*send)
    db = Database(project)
    assert labels(db, DEER) == dict.fromkeys((front, *range(4, 12)), -1)
    assert labels(db, FOX) == {image: -1 if image == 5 else 1 for image in (front, *range(4, 12))}
    assert len(db.tuples("SELECT * FROM event_answer")) == 15 and consistency.find_problems(db) == []


def test_killed_exclusion_of_images_and_its_undo_are_all_or_nothing(project, steps_of):
    db = Database(project)
    for image_id in range(1, 9):
        answer(db, image_id, FOX, 1)
    done(db, 3)
    before = everything(db)
    flags = [
        {"uuid": f"aside-{image_id}", "action": "flag", "annotator": "Ann", "source": "aside", "image_id": image_id,
         "note": "blurred"}
        for image_id in range(2, 10)
    ]  # fmt: skip
    undos = [
        {"uuid": f"back-{image_id}", "action": "undo", "annotator": "Ann", "source": "aside",
         "undoes": f"aside-{image_id}"}
        for image_id in range(2, 10)
    ]  # fmt: skip
    for given, aside in ((flags, set(range(2, 10))), (undos, set())):
        send, rng = ["decide", project, json.dumps(given)], random.Random(6)
        db.close()
        copy = project.with_name("copy")
        shutil.copytree(project, copy)
        steps = steps_of(*send)
        shutil.rmtree(project)
        copy.rename(project)
        db = Database(project)
        earlier = excluded_images.load_image_ids(db)
        for killed_at in sorted(rng.sample(range(1, steps), 5)):
            steps_of(*send, killed_at=killed_at)
            db = Database(project)
            assert excluded_images.load_image_ids(db) == earlier, f"killed at {killed_at} of {steps}"
            assert consistency.find_problems(db) == []
        for _ in range(2):  # sent again, as a browser does
            steps_of(*send)
        db = Database(project)
        assert excluded_images.load_image_ids(db) == aside and consistency.find_problems(db) == []
        assert labels(db, FOX) == dict.fromkeys(range(1, 9), 1)
    assert everything(db) == before

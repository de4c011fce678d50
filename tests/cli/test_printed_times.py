"""Times that the command line prints: in this machine's zone, and with it."""

import re
import time
import uuid

import pytest

from annotator.humanize import format_local_minute
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.people import access_tokens, members

PLAIN_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?!:?\d*[+-]\d\d:\d\d)")


@pytest.fixture
def kolkata(monkeypatch):
    """A machine whose clock is half an hour beside all full ones."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_local_minute_has_the_offset_of_its_time_zone(kolkata):
    assert format_local_minute(0) == "1970-01-01 05:30+05:30"
    assert format_local_minute(None) == ""


def test_every_time_that_a_command_prints_has_its_zone(kolkata, annotator, project):
    db = Database(project)
    image = images.load_all_images(db)[0]
    decisions.save(db, [Decision(str(uuid.uuid4()), "label", "Ann", "click", image_id=image.id, class_id=1, state=1)])
    members.add(db, "Ann", "owner", "test")
    access_tokens.make(db, "camera", "predictions", "Ann")
    annotator("classes", "rename", project, "fox", "red fox")
    annotator("export", project, "labels.csv", "--tag", "first")
    printed = {
        words: annotator(*words, project, *more).stdout
        for words, more in {
            ("history",): [image.name],
            ("classes", "history"): [],
            ("members",): [],
            ("members", "log"): [],
            ("tags",): [],
            ("tokens",): [],
            ("imports",): [],
        }.items()
    }
    assert {words: PLAIN_TIME.findall(text) for words, text in printed.items() if PLAIN_TIME.search(text)} == {}
    assert sum("+05:30" in text for text in printed.values()) >= 4, printed

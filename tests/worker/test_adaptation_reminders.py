"""Adapting again: said when the answers have doubled, and done by itself only where somebody has asked for that."""

import json
import uuid

import numpy as np
import pytest
from harness.adaptable import pretend_adapted
from streamlit.testing.v1 import AppTest

from annotator.records import Decision
from annotator.snapshot.project_status import collect_status
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.networks import adaptation, adapted_networks
from annotator.ui.access import served_project
from annotator.ui.shared.markdown_text import escape_markdown

SCRIPT = """
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.pages.settings import settings_page
with show_errors():
    settings_page.page()
"""


def answer(db: Database, cells: int) -> None:
    """As many answers more."""
    known = adaptation.count_answers(db)
    ids, columns = (
        sorted(images.load_ids_in_working_order(db).tolist()),
        [class_.id for class_ in classes.load_active_classes(db)],
    )
    for cell in range(known, known + cells):
        image_id, class_id = ids[cell // len(columns)], columns[cell % len(columns)]
        click = Decision(str(uuid.uuid4()), "label", "Ann", "click", image_id=image_id, class_id=class_id, state=1)
        assert not decisions.save(db, [click]).refused
    assert adaptation.count_answers(db) == known + cells


@pytest.fixture
def adapted_once(db) -> Database:
    """A project with 10 answers, whose network was adapted with them."""
    answer(db, 10)
    pretend_adapted(db, "tiny.adapted1", "tiny", np.arange(1, 4), known_answers=10, answers=8)
    return db


def page(db: Database) -> AppTest:
    served_project.open_project(db.paths.project)
    test = AppTest.from_string(SCRIPT, default_timeout=120)
    test.session_state["name"] = "Ann"
    return test.run()


def test_another_backbone_adaptation_is_suggested_only_after_the_answers_doubled(adapted_once, annotator):
    db = adapted_once
    answer(db, 9)
    assert adaptation.find_reason_to_readapt(db) is None and collect_status(db)["adapting_again"] is None
    test = page(db)
    assert test.button(key="adapt_run").label == "Adapt now" and not test.info
    answer(db, 1)
    due = adaptation.find_reason_to_readapt(db)
    assert due == adaptation.ReadaptationReason("tiny.adapted1", 10, 20)
    assert due.sentence in annotator("status", db.paths.project).stdout
    assert due.sentence in annotator("adapted", db.paths.project).stdout
    assert json.loads(annotator("status", db.paths.project, "--json").stdout)["adapting_again"]["answers"] == 20
    test = page(db)
    assert test.button(key="adapt_run").label == "Adapt again" and test.info[0].value == escape_markdown(due.sentence)
    test.button(key="adapt_run").click().run()
    assert adaptation.get_request(db) == "run" and adaptation.find_reason_to_readapt(db) is None, (
        "it is asked for already"
    )


def test_backbone_is_adapted_again_automatically_only_when_enabled(adapted_once, annotator):
    db = adapted_once
    answer(db, 10)
    adaptation.request_if_due(db)
    assert adaptation.get_request(db) == ""
    page(db).toggle(key="adapt_again").set_value(True).run()
    assert adaptation.is_automatic(db)
    adaptation.request_if_due(db)
    assert adaptation.get_request(db) == "run"
    adaptation.set_request(db, "")
    adaptation.set_result(db, {"kind": "error", "error": "No room on the disk."})
    adaptation.request_if_due(db)
    assert adaptation.get_request(db) == "", "what has failed is not begun again at once"
    answer(db, 20)
    adaptation.request_if_due(db)
    assert adaptation.get_request(db) == "run", "but when answers have doubled once more"
    adaptation.set_request(db, "")
    annotator("adapted", db.paths.project, "--not-again")
    assert not adaptation.is_automatic(db)


def test_automatic_adaptation_skips_paused_runs_and_projects_without_an_adapted_backbone(adapted_once, db):
    adaptation.set_automatic(db, True)
    answer(db, 10)
    adaptation.set_result(db, {"kind": "paused", "epoch": 1, "of": 4})
    adaptation.request_if_due(db)
    assert adaptation.get_request(db) == ""
    (db.paths.adapted_network("tiny.adapted1") / "facts.json").unlink()
    adaptation.set_result(db, {})
    adaptation.request_if_due(db)
    assert adaptation.get_request(db) == "" and adaptation.find_reason_to_readapt(db) is None


def test_adapted_backbone_file_without_an_answer_count_is_read(adapted_once):
    db = adapted_once
    path = db.paths.adapted_network("tiny.adapted1") / "facts.json"
    facts = json.loads(path.read_text())
    del facts["known_answers"]
    path.write_text(json.dumps(facts))
    assert adapted_networks.load_networks(db)[0].known_answers == 0
    answer(db, 6)
    assert adaptation.find_reason_to_readapt(db) == adaptation.ReadaptationReason("tiny.adapted1", 8, 16)

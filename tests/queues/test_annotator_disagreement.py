"""Annotator disagreement: the stored cells follow every decision and every undo, and one more answer settles a cell."""

import random
import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from harness.answers import say
from harness.member_requests import browser_cookie, served_to_roles
from harness.person import open_page, wait_for_picture
from harness.projects import publish_run
from harness.served import Served
from playwright.sync_api import expect

from annotator.queues import image_queue, review_queue
from annotator.records import Batch, Decision, SuggestionFilter, WantedImages
from annotator.store.database import arrays
from annotator.store.database.database import Database
from annotator.store.labels import decisions, disagreed_cells
from annotator.store.people import leases
from annotator.store.runs import runs

NO_DISAGREEMENT = "No disagreements here."


def cells(db) -> list[list[int]]:
    return disagreed_cells.load_newest_cells(db, 100).tolist()


@pytest.mark.parametrize(
    ("words", "is_open"),
    [
        ("A+ B-", True),
        ("A+ B+", False),
        ("A+ A-", False),  # one's own mistake
        ("A+ B?", False),  # unsure disagrees with nobody
        ("A+ B- C-", False),
        ("A+ B- C?", False),
        ("A+ B- B+", False),
        ("A+ B- A+", False),
        ("A+ B+ B-", True),
        ("A+ B- C- A-", False),
        ("A+ B- C- A+", True),  # what was settled is disputed anew
        ("A. B+", True),
        ("A. B.", False),
        ("A+ B. C-", True),
        ("I+ B-", False),  # a file is not a person
        ("A+ I- B+", False),
        ("A+ B- I+", True),
    ],
)
def test_two_annotators_disagree_until_another_answer(db, words, is_open):
    say(db, *words.split())
    assert ([1, 1] in cells(db)) == is_open


def test_undo_reopens_a_resolved_disagreement_and_closes_a_new_one(db):
    say(db, "A+", "B-", "C-")
    for is_open in (True, False, False):
        decisions.undo(db)
        assert (cells(db) == [[1, 1]]) == is_open


def test_stored_disagreements_match_a_recount_after_random_decisions(db):
    play, seen = random.Random(4), set()
    for step in range(300):
        who, image_id = play.choice(["Ann", "Bob", "Cid"]), play.randint(1, 3)
        kind = play.choice(["label"] * 5 + ["done", "undo", "undo", "batch", "import"])
        name = str(uuid.uuid4())
        if kind == "undo":
            one = Decision(name, "undo", who, "click")
        elif kind == "batch":
            states = [(image_id, of, play.choice([1, -1, 0]), None) for of in (1, 2, 3)]
            one = Batch(name, who, "grid", states)
        elif kind == "done":
            one = Decision(name, "done", who, "done", image_id)
        else:
            source = "import" if kind == "import" else "click"
            one = Decision(name, "label", who, source, image_id, play.randint(1, 3), play.choice([1, -1, 0]))
        assert not decisions.save(db, [one]).refused
        if step % 20 == 19:
            assert {tuple(cell) for cell in cells(db)} == counted(db)
            assert disagreed_cells.count(db) == len(cells(db))
            seen |= {(step, *cell) for cell in cells(db)}
    assert len(seen) > 10


def counted(db) -> set[tuple[int, int]]:
    """The open cells, from all decisions in a row."""
    rows = db.rows("SELECT * FROM decision ORDER BY id")
    gone = {row["undoes"]: row["id"] for row in rows if row["undoes"]}
    found = set()
    for image_id, class_id in {(image_id, class_id) for image_id in (1, 2, 3) for class_id in (1, 2, 3)}:
        answers = []
        for row in rows:
            if row["image_id"] != image_id or row["id"] in gone or row["source"] == "import":
                continue
            if row["action"] == "label" and row["class_id"] == class_id:
                answers.append((row["annotator"], row["state"]))
            elif row["action"] == "done" and not any(
                other["action"] == "label"
                and (other["image_id"], other["class_id"]) == (image_id, class_id)
                # It held when "nothing else here" was said.
                and other["id"] < row["id"] < gone.get(other["id"], len(rows) + 1)
                for other in rows
            ):
                answers.append((row["annotator"], -1))
        start = 0
        for place in range(len(answers)):
            newest = dict(answers[start : place + 1])
            is_open = {1, -1} <= set(newest.values())
            if is_open and place + 1 < len(answers):
                start = place + 1
        if answers and {1, -1} <= set(dict(answers[start:]).values()):
            found.add((image_id, class_id))
    return found


def shown(db, **only) -> list[tuple[int, list]]:
    """What Review gives: image id, and its chips as (class, probability, newest state, who said what)."""
    wanted = WantedImages(
        "review", str(uuid.uuid4()), "Ann", (), 24, SuggestionFilter(kind="annotator_disagreements", **only)
    )
    found = [
        (
            image_id,
            [(chip.class_id, chip.probability, chip.known, tuple(voice[:2] for voice in chip.said)) for chip in chips],
        )
        for image_id, chips in review_queue.lease_next_images(db, wanted, 0.5)
    ]
    with db.writing() as sql:
        sql.execute("DELETE FROM lease")
    return found


def test_review_shows_the_answers_of_both_annotators_without_a_model(db):
    say(db, "A+", "B-", image_id=5, class_id=2)
    say(db, "B+", "A-", image_id=3, class_id=1)
    assert shown(db) == [
        (3, [(1, None, -1, (("Bob", 1), ("Ann", -1)))]),
        (5, [(2, None, -1, (("Ann", 1), ("Bob", -1)))]),
    ]
    say(db, "C+", image_id=3)
    assert [image_id for image_id, _ in shown(db)] == [5]
    only = SuggestionFilter(kind="annotator_disagreements", class_id=3)
    work = image_queue.lease_next_work(db, WantedImages("review", "x", "Ann", (), 8, only))
    assert work.items == [] and work.empty_reason == NO_DISAGREEMENT


def test_empty_review_queue_counts_matching_images_open_on_other_pages(db):
    for image_id in (3, 5, 7):
        say(db, "A+", "B-", image_id=image_id, class_id=2)
    leases.lease_images(db, "other", "Bob", [3, 5, 7, 9], 4)

    def empty(**only) -> str:
        return image_queue.lease_next_work(
            db,
            WantedImages("review", "x", "Ann", (), 8, SuggestionFilter(**{"kind": "annotator_disagreements"} | only)),
        ).empty_reason

    assert "No other disagreements. 3 images are open elsewhere" in empty()
    assert "3 images" in empty(by="Bob") and empty(by="Cid") == empty(class_id=1) == NO_DISAGREEMENT
    say(db, "C+", image_id=3, class_id=2)
    leases.renew_images(db, "other", "Bob", [3, 5, 9])
    leases.lease_images(db, "third", "Cy", [7], 1)
    assert "2 images are open elsewhere" in empty()
    publish_run(db, np.full((24, 3), 0.9))
    leases.lease_images(db, "fourth", "Di", range(1, 25), 24)
    assert "No other suggestions. 24 images are open elsewhere" in empty(kind="missing")
    assert empty(kind="missing", low=0.95).startswith("No more suggestions")


def test_review_ranks_disagreements_by_distance_of_the_prediction_from_one_half(db):
    for image_id in (1, 2, 3, 4):
        say(db, "A+", "B-", image_id=image_id)
    say(db, "A+", "C-", image_id=4, class_id=2)
    chances = np.full((24, 3), np.nan)
    chances[:4, 0] = (0.6, 0.05, 0.9, 0.45)
    publish(db, chances)
    assert [image_id for image_id, _ in shown(db)] == [2, 3, 1, 4]
    assert [image_id for image_id, _ in shown(db, low=0.5)] == [3, 1]
    assert [image_id for image_id, _ in shown(db, class_id=2)] == [4]
    assert shown(db, by="Cid") == [(4, [(2, None, -1, (("Ann", 1), ("Cid", -1)))])]


def publish(db, chances: np.ndarray) -> None:
    facts = {"method": "gr", "parameters": {}, "backbone": "x", "class_ids": [1, 2, 3], "images": 24}
    run_id = runs.begin(db, **facts, last_decision_id=decisions.get_newest_decision_id(db), threshold=0.5)
    arrays.save_array(db.paths.run(run_id) / "image_ids.npy", np.arange(1, 25))
    arrays.save_array(db.paths.run(run_id) / "probabilities.npy", chances.astype(np.float16))
    runs.publish(db, run_id, epochs=1, seconds=0.1, loss=[0.5])


@pytest.fixture
def shared(tmp_path) -> Iterator[Served]:
    with served_to_roles(tmp_path) as served:
        yield served


@pytest.mark.slow
@pytest.mark.process
def test_page_reports_that_a_reviewer_resolves_the_disagreement_after_an_annotator_answer(browser, shared):
    db = Database(shared.project)
    for name, state in (("Pia", 1), ("Udo", -1)):
        assert not decisions.save(db, [Decision(f"of-{name}", "label", name, "click", 6, 2, state)]).refused
    page = open_page(browser, shared, "x")
    page.context.add_cookies([browser_cookie(shared, "annotator")])
    page.goto(f"{shared.address}/?image=6")
    wait_for_picture(page)
    page.keyboard.press("Shift+2")
    expect(page.get_by_text("Your answer is noted; a reviewer decides.")).to_be_visible()
    assert disagreed_cells.load_newest_cells(db, 9).tolist() == [[6, 2]]
    assert [label.state for label in decisions.load_labels(db, [6]) if label.class_id == 2] == [-1], "as it was"
    page.keyboard.press(";")
    expect(page.locator(".history li").last).to_contain_text("an opinion, given while people disagreed")
    settled = Decision("of-reviewer-1", "label", "reviewer", "settlement", 6, 2, 1)
    assert not decisions.save(db, [settled]).refused
    assert disagreed_cells.count(db) == 0

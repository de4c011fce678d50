"""Review's filters: by class, probability and person, and decisions that the model doubts, which go when answered."""

import threading

import numpy as np
import pytest
from harness.answers import answer_cell

from annotator.errors import AnnotatorError
from annotator.queues import review_queue
from annotator.records import Decision, SuggestionFilter, WantedImages
from annotator.store.database import arrays
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.runs import runs


@pytest.fixture
def chances(db) -> np.ndarray:
    """A run of (24, 3) that has seen 6 decisions, no two probabilities alike."""
    for image_id, state in ((1, 1), (2, 1), (3, -1), (4, -1), (5, 0), (6, 1)):
        answer_cell(db, image_id, 1, state, annotator="Ann" if image_id % 2 else "Bob")
    found = np.random.default_rng(3).permutation(72).reshape(24, 3) / 100 + 0.1
    found[:6, 0] = (0.05, 0.95, 0.97, 0.02, 0.99, 0.2)
    facts = {"method": "gr", "parameters": {}, "backbone": "x", "class_ids": [1, 2, 3], "images": 24}
    run_id = runs.begin(db, **facts, last_decision_id=6, threshold=0.5)
    arrays.save_array(db.paths.run(run_id) / "image_ids.npy", np.arange(1, 25))
    arrays.save_array(db.paths.run(run_id) / "probabilities.npy", found.astype(np.float16))
    runs.publish(db, run_id, epochs=1, seconds=0.1, loss=[0.5])
    return found


def shown(db, holder: str = "tab", want: int = 24, passed=(), **only) -> list[tuple[int, list[tuple[int, int | None]]]]:
    """What Review gives: image id, and its suggestions as (class, what a person said)."""
    wanted = WantedImages("review", holder, "Ann", (), want, SuggestionFilter(**only), passed)
    return [
        (image_id, [(chip.class_id, chip.known) for chip in chips])
        for image_id, chips in review_queue.lease_next_images(db, wanted, 0.5)
    ]


def test_review_filtered_by_class_shows_its_suggestions_most_probable_first(db, chances):
    found = shown(db, class_id=2, low=0.4)
    order = sorted(range(24), key=lambda row: -chances[row, 1])
    assert found == [(row + 1, [(2, None)]) for row in order if chances[row, 1] >= 0.4]


def test_probability_range_filters_suggestions_and_orders_images(db, chances):
    low, high = 0.3, 0.455
    still_open = chances.copy()
    still_open[:6, 0] = np.nan
    inside = np.where((still_open >= low - 0.001) & (still_open <= high), still_open, np.nan)
    rows = [row for row in range(24) if not np.isnan(inside[row]).all()]
    expected = sorted(rows, key=lambda row: -np.nanmax(inside[row]))
    found = shown(db, low=low, high=high)
    assert [image_id - 1 for image_id, _ in found] == expected
    for image_id, chips in found:
        assert {of - 1 for of, _ in chips} == set(np.flatnonzero(~np.isnan(inside[image_id - 1])))


def test_review_in_a_probability_range_loads_more_suggestions_after_its_first_block(db, chances, monkeypatch):
    everything = shown(db, low=0.2, high=0.6)
    monkeypatch.setattr(review_queue, "MERGED_CELLS", 3)  # one cell a class at first
    assert shown(db, low=0.2, high=0.6) == everything
    assert shown(db, low=0.2, high=0.6, passed=[everything[0][0]]) == everything[1:]


def test_review_filtered_by_annotator_shows_only_images_that_annotator_answered(db, chances):
    assert {image_id for image_id, _ in shown(db, low=0.0, by="Bob")} == {2, 4, 6}
    answer_cell(db, 20, 3, 1, "Bob")
    assert {image_id for image_id, _ in shown(db, low=0.0, by="Bob")} == {2, 4, 6, 20}
    assert shown(db, low=0.0, by="Nobody") == []


def test_review_shows_likely_mistakes_with_their_stored_answer_until_answered_again(db, chances):
    assert shown(db, kind="likely_mistakes") == [(3, [(1, -1)]), (1, [(1, 1)]), (6, [(1, 1)])]
    assert shown(db, kind="likely_mistakes", by="Bob") == [(6, [(1, 1)])]
    assert shown(db, kind="likely_mistakes", class_id=2) == []
    assert shown(db, kind="likely_mistakes", high=0.1) == [(1, [(1, 1)])]
    answer_cell(db, 3, 1, 1)
    answer_cell(db, 1, 1, 0)
    assert shown(db, kind="likely_mistakes") == [(6, [(1, 1)])]
    decisions.undo(db, "Ann")
    assert [image_id for image_id, _ in shown(db, kind="likely_mistakes")] == [1, 6]


def test_likely_mistakes_with_a_disagreement_are_shown_only_to_reviewers(db, chances):
    assert not decisions.save(db, [Decision("of-bob-1", "label", "Bob", "reading", 3, 1, 1)]).refused

    def given(may_review: bool) -> list[int]:
        only = SuggestionFilter(kind="likely_mistakes")
        wanted = WantedImages("review", "tab", "Ann", (), 24, only, may_review=may_review)
        return [image_id for image_id, _ in review_queue.lease_next_images(db, wanted, 0.5)]

    assert given(may_review=True) == [3, 1, 6] and given(may_review=False) == [1, 6]


def test_unknown_suggestion_kind_error_suggests_a_valid_kind(db, chances):
    with pytest.raises(AnnotatorError, match="missing"):
        shown(db, kind="mising")


def test_review_never_shows_suggestions_answered_before_during_concurrent_decisions(db, chances):
    wrong, over = [], threading.Event()

    def decide() -> None:
        for image_id in np.random.default_rng(0).permutation(24).tolist():
            for class_id in (1, 2, 3):
                answer_cell(db, image_id + 1, class_id, 1, "Bob")
        over.set()

    deciding = threading.Thread(target=decide)
    deciding.start()
    while not over.is_set():
        before = {(image_id, class_id) for image_id, class_id, _ in decisions.load_label_cells(db)[0]}
        for image_id, chips in shown(db, want=4, low=0.0):
            wrong += [(image_id, of) for of, _ in chips if (image_id, of) in before]
    deciding.join()
    assert not wrong
    assert shown(db, low=0.0) == []


def test_review_skips_an_image_whose_file_is_missing(db, chances):
    first = shown(db, want=1)[0][0]
    images.mark_problem(db, first, "the file has gone")
    assert first not in [image_id for image_id, _ in shown(db)]

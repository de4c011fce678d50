"""The measurement of a team: a tiny one keeps every promise, and a lease that has ended is no image in two hands."""

import time

import pytest
from harness import projects

from annotator.errors import AnnotatorError
from annotator.store.people import leases
from annotator.store.people.leases import LeaseRequest
from benchmarks.faults.hands import WHOLE_IMAGE_CLASS, Hands
from benchmarks.faults.simulated_pages import SentDecisions
from benchmarks.team.lease_expiry import LeaseExpiry
from benchmarks.team.team_measurement import measure
from benchmarks.team.teammates import Teammate


@pytest.mark.parametrize(("lease_seconds", "twice"), [(150.0, 1), (0.0, 0)])
def test_image_of_an_annotator_who_left_counts_as_assigned_twice_only_while_leased(
    tmp_path, monkeypatch, lease_seconds, twice
):
    for module in ("annotator.store.people.leases", "benchmarks.team.lease_expiry"):
        monkeypatch.setattr(f"{module}.LEASE_SECONDS", lease_seconds)
    # enough to see that the long lease goes on
    monkeypatch.setattr("benchmarks.team.lease_expiry.MAX_WAIT_SECONDS", 1.0)
    db, hands = projects.make_project(tmp_path, 30, 2), Hands()
    # its first decision is due long after it has gone
    gone = Teammate(0, "Ann", 1, {}, [1], 1000.0, SentDecisions(), hands)
    gone.asked_at = time.monotonic()
    cells = [
        (image, WHOLE_IMAGE_CLASS) for image in leases.lease_next_images(db, LeaseRequest(gone.holder, "Ann", [], 1))
    ]
    hands.take_cells(gone.holder, cells)
    gone.start()
    freed = LeaseExpiry(db, hands, [gone])
    assert (freed.wait_for_seconds() is None) == bool(twice)
    hands.take_cells("a colleague", cells)
    assert len(hands.double_holdings) == twice


@pytest.mark.slow
@pytest.mark.process
def test_simulated_team_work_loses_and_duplicates_no_decision_and_causes_no_errors():
    figures = measure(5, 0.2, 0.1, 0, 400)["figures"]
    nothing = ("lost", "doubled", "moved", "in_parts", "from_nobody")
    assert [figures[f"decisions_{kind}"] for kind in nothing] == [0] * len(nothing)
    assert figures["in_two_hands"] == figures["tables_broken"] == 0
    assert figures["answers_with_an_error"] == figures["requests_unanswered"] == figures["refused"] == 0
    assert figures["images_handed_out"] >= 5 and figures["decisions_stored"] > 5
    assert figures["decision_p95_ms"] > 0 and figures["work_p95_ms"] > 0


def test_team_measurement_refuses_more_browsers_than_annotators():
    with pytest.raises(AnnotatorError, match="too few people"):
        measure(1, 1.0, 0.1, 2, 50)


@pytest.mark.slow
@pytest.mark.browser
def test_team_measurement_attributes_the_decisions_sent_by_a_real_browser():
    figures = measure(1, 0.5, 0.05, 1, 100)["figures"]
    assert figures["decisions_stored"] >= 5 and figures["decisions_from_nobody"] == figures["decisions_lost"] == 0
    assert figures["decisions_a_second"] > 0, "the page was heard to be told that they are saved"

"""The clock of the server is set back or forward: who is signed out stays so, who signs in again is in, and what a
heartbeat vouched for before the jump does not live for ever."""

import time
from collections.abc import Callable

import pytest
from harness.outbox import QUEUE, entry, project_of, queue
from harness.person import decided, open_page, served_photos, wait_for_picture, wait_until_saved
from playwright.sync_api import expect

from annotator.store.database import heartbeat, process_claims
from annotator.store.networks import adaptation, embedding_claim
from annotator.store.people import leases, members
from annotator.ui.access.access_keys import cookie_name
from annotator.ui.access.serving_modes import INVITATION, parse_access
from annotator.ui.access.sessions import Sessions
from annotator.ui.access.tokens import Tokens

DAY = 24 * 3600.0


@pytest.fixture
def clock(monkeypatch) -> Callable[[float], None]:
    """Sets the clock so many seconds forward (below 0: back) from what it really is."""
    real = time.time
    return lambda seconds: monkeypatch.setattr(time, "time", lambda: real() + seconds)


@pytest.fixture
def sessions(db) -> Sessions:
    return Sessions(db, parse_access(INVITATION, 8501), Tokens(db.paths.secret))


def session_of(sessions: Sessions, name: str) -> dict[str, str]:
    """The cookie that an invitation link gives now."""
    member = members.sign_in_by_link(sessions.db, members.create_link(sessions.db, name, "test"))
    value = sessions.tokens.create_session_cookie(8501, member.id, member.signed_in_at)
    return {cookie_name(8501): value}


def is_in(sessions: Sessions, cookies: dict[str, str]) -> bool:
    sessions.refresh(force=True)
    return sessions.find_member(cookies) is not None


@pytest.mark.parametrize("jump", [-DAY, DAY])
def test_sign_out_everywhere_ends_sessions_and_new_ones_start_after_clock_jumps(db, sessions, clock, jump):
    members.add(db, "Ann", "annotator", "test")
    before = session_of(sessions, "Ann")
    clock(jump)
    after = session_of(sessions, "Ann")
    assert is_in(sessions, before) and is_in(sessions, after)
    members.sign_out_everywhere(db, "Ann", "test")
    for seconds in (jump, 0.0, -jump, 2 * jump, DAY + abs(jump)):
        clock(seconds)
        assert not is_in(sessions, before) and not is_in(sessions, after), seconds
        again = session_of(sessions, "Ann")
        assert is_in(sessions, again), seconds
        members.sign_out_everywhere(db, "Ann", "test")
        assert not is_in(sessions, again), seconds


def test_heartbeat_with_a_future_time_does_not_count_as_alive(db, clock, monkeypatch):
    clock(DAY)
    # as of a machine on which it cannot be looked up
    monkeypatch.setattr(process_claims, "get_process_name", lambda: "")
    heartbeat.report_state(db, "waiting")
    embedding_claim.claim(db, "ray")
    adaptation.claim(db, "local")
    assert heartbeat.load_worker_state(db).alive and embedding_claim.get_running(db) and adaptation.get_running(db)
    clock(0)
    monkeypatch.setattr("socket.gethostname", lambda: "another machine")  # where the process cannot be looked up
    assert not heartbeat.load_worker_state(db).alive
    assert embedding_claim.get_running(db) is None and adaptation.get_running(db) is None
    heartbeat.report_state(db, "waiting")
    assert heartbeat.load_worker_state(db).alive


def test_image_lease_survives_clock_jumps(db, clock):
    held = leases.lease_images(db, "a", "Ann", [1, 2, 3], 2)
    for seconds in (-DAY, DAY):
        clock(seconds)
        assert leases.lease_images(db, "b", "Ben", held, 2) == [] and leases.find_taken_by_others(db, "a", held) == []


@pytest.mark.slow
@pytest.mark.browser
def test_decisions_queued_before_a_browser_clock_reset_are_sent_first_and_by_any_tab(browser, tmp_path):
    with served_photos(tmp_path, 24, ("fox", "heron")) as served:
        page = open_page(browser, served, "Ann")
        wait_for_picture(page)
        page.route("**/api/decisions", lambda route: route.abort())
        later = page.evaluate("(Date.now() + 24 * 3600 * 1000) * 1000")  # microseconds, by the clock as it was
        queue(page, served, entry("from-before", image=24, order=later))
        page.keyboard.press("1")
        expect(page.locator(".foot")).to_contain_text("2 unsent")
        page.unroute("**/api/decisions")
        wait_until_saved(page, 2)
        assert [row["uuid"].startswith("from-before") for row in decided(served, "Ann")] == [True, False]
        # Left by a tab that was closed since; this one is open all the while.
        page.evaluate(QUEUE, [project_of(served), [entry("closed-tab", image=23, order=2 * later)]])
        wait_until_saved(page, 3)
        assert len(decided(served, "Ann")) == 3

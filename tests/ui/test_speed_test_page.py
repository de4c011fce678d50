"""The speed test in a real Chromium, by keyboard alone: every task is timed, and nothing becomes a label."""

from collections.abc import Iterator

import pytest
from conftest import CLASSES
from harness.contexts import Contexts
from harness.grids import DRAWN, KIND
from harness.person import looked_around, open_page, served_photos
from harness.served import Served, until
from playwright.sync_api import Page, expect

from annotator.queues.speed_test_tasks import TASK_PLAN
from annotator.store.database.database import Database

pytestmark = pytest.mark.browser

HIDE = """() => {
  Object.defineProperty(document, "hidden", { value: true, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
  delete document.hidden;
}"""


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    with served_photos(tmp_path, 60, CLASSES) as served:
        yield served


def on_screen(page: Page, number: int) -> str:
    """The kind of this task, once it is on screen and drawn."""
    expect(page.locator(".tally")).to_have_text(f"{number} of {len(TASK_PLAN)}", timeout=60_000)
    page.evaluate(DRAWN)
    looked_around(page)
    return until(lambda: page.evaluate(KIND))


def do(page: Page, number: int) -> None:
    """This task, with one press besides Enter."""
    kind = on_screen(page, number)
    page.keyboard.press("2")
    if kind != "click":
        page.keyboard.press("Enter")


def times(served: Served, count: int) -> list[tuple]:
    """The times that are kept, once there are this many: the page shows the next task while a time is on its way."""

    def kept() -> list[tuple] | None:
        found = Database(served.project).tuples("SELECT task, kind, cells, changes FROM speed_test ORDER BY task")
        return found if len(found) >= count else None

    return until(kept)


@pytest.mark.slow
def test_speed_test_by_keyboard_stores_only_the_time_of_each_task(browser: Contexts, served):
    page = open_page(browser, served, "Ann", "/speed_test")
    expect(page.get_by_role("heading", name="How fast are you?")).to_be_visible(timeout=60_000)
    page.keyboard.press("Enter")
    for number in range(1, len(TASK_PLAN) + 1):
        do(page, number)
    expect(page.get_by_role("heading", name="Done. Your times:")).to_be_visible()
    kept = times(served, len(TASK_PLAN))
    assert [(task, kind) for task, kind, _, _ in kept] == [(task, kind) for task, (kind, _, _) in enumerate(TASK_PLAN)]
    assert all(changes == 1 for _, kind, _, changes in kept if kind != "image")
    assert [cells for _, kind, cells, _ in kept if kind == "grid"] == [
        size for kind, size, _ in TASK_PLAN if kind == "grid"
    ]
    db = Database(served.project)
    assert db.value("SELECT count(*) FROM decision") == db.value("SELECT count(*) FROM label") == 0
    assert page.troubles == []


@pytest.mark.slow
def test_stopped_speed_test_task_is_repeated_and_a_reload_resumes_the_test(browser: Contexts, served):
    page = open_page(browser, served, "Ann", "/speed_test")
    expect(page.get_by_role("heading", name="How fast are you?")).to_be_visible(timeout=60_000)
    page.keyboard.press("Enter")
    do(page, 1)
    on_screen(page, 2)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Continue (1 task of 14 done)")).to_be_visible()
    page.keyboard.press("Backspace")  # nothing to undo here, also of other pages
    page.keyboard.press("Enter")
    do(page, 2)
    on_screen(page, 3)
    page.reload()
    expect(page.get_by_role("button", name="Continue (2 tasks of 14 done)")).to_be_visible(timeout=60_000)
    page.keyboard.press("Enter")
    do(page, 3)
    on_screen(page, 4)
    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_be_visible()
    page.keyboard.press("Escape")  # closes the list, not the task
    do(page, 4)
    on_screen(page, 5)
    assert [task for task, *_ in times(served, 4)] == [0, 1, 2, 3]


@pytest.mark.slow
def test_settings_page_links_to_the_speed_test_and_the_label_menu_omits_it(browser: Contexts, served):
    page = open_page(browser, served, "Ann", "/settings")
    page.get_by_role("link", name="How fast are you? A two-minute test").click(timeout=60_000)
    expect(page.get_by_role("heading", name="How fast are you?")).to_be_visible(timeout=60_000)
    page.get_by_test_id("stTopNavSection").filter(has_text="Label").click()
    expect(page.get_by_role("menuitem", name="Autopilot")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Speed test")).to_have_count(0)


@pytest.mark.slow
def test_speed_test_repeats_a_task_after_the_page_was_hidden(browser: Contexts, served):
    page = open_page(browser, served, "Ann", "/speed_test")
    expect(page.get_by_role("heading", name="How fast are you?")).to_be_visible(timeout=60_000)
    page.keyboard.press("Enter")
    on_screen(page, 1)
    page.evaluate(HIDE)
    expect(page.get_by_text("The page was hidden: the task is asked again.")).to_be_visible()
    looked_around(page)
    page.keyboard.press("Enter")
    do(page, 1)
    on_screen(page, 2)
    assert [task for task, *_ in times(served, 1)] == [0]


@pytest.mark.slow
def test_speed_test_times_that_could_not_be_saved_are_sent_again(browser: Contexts, served):
    page = open_page(browser, served, "Ann", "/speed_test")
    expect(page.get_by_role("heading", name="How fast are you?")).to_be_visible(timeout=60_000)
    page.keyboard.press("Enter")
    for number in range(1, len(TASK_PLAN)):
        do(page, number)
    on_screen(page, len(TASK_PLAN))
    page.route("**/api/speed_test/time", lambda route: route.abort())
    do(page, len(TASK_PLAN))
    expect(page.get_by_text("1 time could not be saved yet.")).to_be_visible()
    page.unroute("**/api/speed_test/time")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="Done. Your times:")).to_be_visible()
    assert len(times(served, len(TASK_PLAN))) == len(TASK_PLAN)

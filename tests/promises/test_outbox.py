"""What the page keeps until the server has it: nothing that can never be stored holds up the rest, or vanishes."""

import json
from collections.abc import Iterator

import pytest
from harness.browser import set_name_cookie
from harness.contexts import Contexts
from harness.outbox import entry, project_of, queue
from harness.person import (
    decided,
    labels_of,
    on_screen,
    open_page,
    served_photos,
    wait_for_another,
    wait_for_picture,
    wait_until_saved,
)
from harness.served import Served
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.process]

KEPT = """(project) => Object.keys(localStorage).filter((key) => key.startsWith("annotator:" + project))
    .map((key) => [key.split(":")[2], localStorage.getItem(key)])"""


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    with served_photos(tmp_path_factory.mktemp("outbox"), 40, ["fox", "heron", "deer"]) as one:
        yield one


def kept(page: Page, served: Served) -> dict[str, list]:
    found: dict[str, list] = {"unsaved": [], "aside": []}
    for kind, text in page.evaluate(KEPT, project_of(served)):
        if kind in found:
            found[kind].append(json.loads(text))
    return found


def label_on_screen(page: Page, key: str) -> int:
    wait_for_picture(page)
    image = on_screen(page)
    page.keyboard.press(key)
    wait_for_another(page, image)
    return image


@pytest.mark.slow
def test_decisions_that_cannot_be_stored_are_shown_exported_and_dismissed(browser: Contexts, served):
    page = open_page(browser, served, "Ann", accept_downloads=True)
    wait_for_picture(page)
    half = entry("half-a-letter", action="flag", note="odd \ud83d")
    page.evaluate("""() => { window.half = "odd \\ud83d"; }""")
    page.evaluate(
        """([project, one]) => localStorage.setItem(`annotator:${project}:unsaved:${one.uuid}`,
        JSON.stringify({ ...one, order: 1, note: window.half }))""",
        [project_of(served), half | {"note": ""}],
    )
    page.evaluate(
        """(project) => localStorage.setItem(`annotator:${project}:unsaved:torn-apart`, '{"uuid": "torn-ap')""",
        project_of(served),
    )
    queue(page, served, entry("too-large-id", image=2**63), entry("good-one", image=7, **{"class": 2}))
    foot = page.locator(".foot")
    expect(foot).to_contain_text("3 not saved")
    wait_until_saved(page, 1)
    expect(foot).not_to_contain_text("trying again")
    assert labels_of(served, 7) == {2: 1}
    image = label_on_screen(page, "1")
    wait_until_saved(page, 2)
    assert labels_of(served, image) == {1: 1}

    page.reload()
    wait_for_picture(page)
    expect(foot).to_contain_text("3 not saved")
    foot.get_by_role("button", name="Show").click()
    dialog = page.get_by_role("dialog", name="Answers not saved")
    expect(dialog.locator("li")).to_have_count(3)
    expect(dialog.locator("[data-uuid=too-large-id]")).to_contain_text("Fox on image")
    expect(dialog.locator("[data-uuid=half-a-letter]")).to_contain_text("Flag")
    page.keyboard.press("2")
    page.keyboard.press("Backspace")
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download as JSON").click()
    told = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert {one["decision"]["uuid"] for one in told if "uuid" in one["decision"]} == {"half-a-letter", "too-large-id"}
    assert all(one["reason"] for one in told)
    for _ in range(3):
        dialog.get_by_role("button", name="Dismiss").first.click()
    expect(dialog).to_be_hidden()
    expect(foot).to_contain_text("All saved")
    assert kept(page, served) == {"unsaved": [], "aside": []}
    assert len(decided(served, "Ann")) == 2, "no key of the dialog reached the page"
    assert page.troubles == []


@pytest.mark.slow
def test_refused_request_is_split_until_only_the_invalid_decision_is_unsaved(browser: Contexts, served):
    """As an older server would answer that reads a request as a whole."""
    page = open_page(browser, served, "Eve")
    wait_for_picture(page)
    sizes = []

    def strict(route) -> None:
        body = json.loads(route.request.post_data)
        sizes.append(len(body["decisions"]))
        if any(one["uuid"] == "the-culprit" for one in body["decisions"]):
            route.fulfill(status=400, content_type="application/json", body='{"error": "it cannot be read"}')
        else:
            route.continue_()

    page.route("**/api/decisions", strict)
    names = [f"waiting-{number}" for number in range(11)]
    names[4] = "the-culprit"
    queue(page, served, *(entry(name, image=place + 10, annotator="Eve") for place, name in enumerate(names)))
    expect(page.locator(".foot")).to_contain_text("1 not saved: it cannot be read")
    wait_until_saved(page, 10)
    assert [row["image_id"] for row in decided(served, "Eve")] == [place + 10 for place in range(11) if place != 4]
    assert sizes[0] == 11 and 1 in sizes
    page.unroute("**/api/decisions")
    page.locator(".foot").get_by_role("button", name="Show").click()
    page.get_by_role("button", name="Send again").click()
    wait_until_saved(page, 11)
    expect(page.locator(".foot")).to_contain_text("All saved")


@pytest.mark.slow
def test_unsent_decision_keeps_its_annotator_after_a_name_change(browser: Contexts, served):
    page = open_page(browser, served, "Ida")
    wait_for_picture(page)
    page.context.set_offline(True)
    image = on_screen(page)
    page.keyboard.press("3")
    expect(page.locator(".foot")).to_contain_text("1 unsent")
    page.route("**/api/decisions", lambda route: route.abort())
    page.context.set_offline(False)
    set_name_cookie(page.context, served.project, served.address, "Jon")
    page.reload()
    wait_for_picture(page)
    page.unroute("**/api/decisions")
    wait_until_saved(page, 1)
    assert [row["image_id"] for row in decided(served, "Ida")] == [image]
    assert decided(served, "Jon") == []


@pytest.mark.slow
def test_invalid_unicode_in_an_image_comment_becomes_the_replacement_character(browser: Contexts, served):
    page = open_page(browser, served, "Kim")
    wait_for_picture(page)
    page.keyboard.press(",")
    field = page.get_by_role("textbox", name="Note")
    field.evaluate("""(node) => { node.value = "odd \\ud83d!"; }""")
    field.press("Enter")
    wait_until_saved(page, 1)
    assert [row["note"] for row in decided(served, "Kim")] == ["odd \ufffd!"]

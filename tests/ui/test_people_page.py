"""The People page: everybody sees themselves, and only reviewers and owners see the others."""

import csv
from collections.abc import Iterator

import pytest
from harness.blind_answers import say
from harness.member_requests import TEAM, ask, browser_cookie
from harness.person import open_page, served_photos, wait_until_drawn
from harness.served import Served, until
from playwright.sync_api import Page, expect

from annotator.store.database.database import Database
from annotator.store.labels import image_overlap
from annotator.store.people import members

pytestmark = [pytest.mark.browser, pytest.mark.process]


@pytest.fixture(scope="module")
def team(tmp_path_factory) -> Iterator[Served]:
    """Ann and Ben have answered twelve images; they differ on 8 of 36 pairs."""
    classes = ("fox", "boar", "deer")
    with served_photos(tmp_path_factory.mktemp("people"), 14, classes, size=(60, 40), python=TEAM) as served:
        until(lambda: "Open this address" in served.log.read_text())
        db = Database(served.project)
        for name, role in (("Ann", "annotator"), ("Ben", "annotator"), ("Rita", "reviewer")):
            members.add(db, name, role, "test")
        image_overlap.set_overlap(db, 2, 1.0)
        for image_id in range(1, 13):
            say(db, image_id, "Ann", (1,))
            say(db, image_id, "Ben", (1,) if image_id % 3 else (2,))
        # Roles are looked up once a second.
        until(lambda: ask(served, "Rita", "/api/items", {"images": [1]})[0] == 200)
        yield served


def look(browser, served: Served, name: str) -> Page:
    page = open_page(browser, served, "x", "/people")
    page.context.add_cookies([browser_cookie(served, name)])
    page.goto(f"{served.address}/people")
    expect(page.get_by_text("Estimates, not judgments").or_(page.get_by_text("answered nothing"))).to_be_visible(
        timeout=60_000
    )
    return page


@pytest.mark.slow
def test_people_page_shows_annotators_only_themselves(browser, team):
    page = look(browser, team, "Ben")
    expect(page.get_by_text("77.7 %")).to_be_visible()
    expect(page.get_by_text("0 of 36", exact=True)).to_be_visible()  # they differ on 8, and nobody has settled it
    assert "Ann" not in page.locator("[data-testid=stMain]").inner_text()
    expect(page.get_by_role("button", name="Download as CSV")).to_have_count(0)
    assert page.troubles == []


@pytest.mark.slow
def test_people_page_shows_reviewers_all_annotators_and_a_csv_download(browser, team):
    page = look(browser, team, "Rita")
    table = page.get_by_role("region", name="Everybody")
    expect(table).to_contain_text("Ann")
    expect(table).to_contain_text("Ben")
    expect(page.get_by_role("button", name="Download as CSV")).to_be_visible()
    box = page.get_by_role("combobox", name="Person")
    box.fill("Ben")
    box.press("Enter")
    of_class = page.get_by_role("region", name="Estimates by class")
    expect(of_class).to_contain_text("fox")
    titles = ["class", "finds", "rejects", "same", "changed", "seconds"]
    expect(of_class.get_by_role("columnheader")).to_contain_text(titles)
    week = page.get_by_role("region", name="By week").get_by_role("row").nth(1)
    expect(week).to_contain_text("77 % (61 % to 88 %)")
    expect(week).to_contain_text("0 of 36 (0 % to 9 %)")
    wait_until_drawn(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    rows = list(csv.DictReader(download.value.path().open()))
    assert [row["of"] for row in rows if row["person"] == "Ann" and row["by"] == "class"] == ["fox", "boar", "deer"]
    assert page.troubles == []

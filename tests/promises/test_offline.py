"""Without a server, and with several tabs: every decision arrives, and arrives once."""

from collections.abc import Iterator

import pytest
from harness.person import (
    list_stored_cells,
    open_page,
    press_class_keys,
    served_photos,
    wait_for_picture,
    wait_until_saved,
)
from harness.served import Served, until
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Iterator[Served]:
    with served_photos(tmp_path_factory.mktemp("many"), 300, ("fox", "heron", "deer")) as served:
        yield served


def test_decisions_made_offline_are_stored_in_order_after_reconnecting(browser, many):
    page = open_page(browser, many, "Minute", clock=True)
    wait_for_picture(page)
    given = press_class_keys(page, "1", "2")
    wait_until_saved(page)
    page.context.set_offline(True)
    for _ in range(6):
        given += press_class_keys(page, "3", "1")
        page.clock.run_for(10_000)  # leases, retries and the worker's line go on meanwhile
    expect(page.locator(".foot")).to_contain_text("12 unsent")
    expect(page.locator(".foot")).to_contain_text("Nothing is lost")
    page.context.set_offline(False)
    wait_until_saved(page)
    assert list_stored_cells(many, "Minute") == given
    assert page.troubles == []


@pytest.mark.slow
def test_two_tabs_of_one_annotator_show_different_images_and_lose_no_decisions(browser, many):
    first = open_page(browser, many, "Tabs")
    second = first.context.new_page()
    second.goto(f"{many.address}/annotate")
    given = []
    for _ in range(6):
        for page in (first, second):
            page.bring_to_front()
            given += press_class_keys(page, "2")
    wait_until_saved(first)
    wait_until_saved(second)
    assert sorted(list_stored_cells(many, "Tabs")) == sorted(given)
    assert len({image_id for image_id, _ in given}) == 12


@pytest.mark.slow
def test_unsent_decisions_of_a_closed_tab_are_sent_by_another_tab(browser, many):
    first = open_page(browser, many, "Heir", clock=True)
    wait_for_picture(first)
    first.wait_for_load_state("networkidle")
    second = first.context.new_page()
    second.goto(f"{many.address}/annotate")
    wait_for_picture(second)
    first.bring_to_front()
    first.context.set_offline(True)
    given = press_class_keys(first, "1", "2", "3")
    first.close(run_before_unload=False)
    second.context.set_offline(False)
    second.clock.fast_forward(9_000)  # it takes over what nobody has sent for five seconds
    assert until(lambda: len(list_stored_cells(many, "Heir")) == 3)
    assert list_stored_cells(many, "Heir") == given

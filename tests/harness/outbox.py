"""Answers that wait in the browser because they could not be sent."""

from playwright.sync_api import Page

from harness.person import wait_for_picture
from harness.served import Served

QUEUE = """([project, entries]) => entries.forEach((entry, place) => localStorage.setItem(
    `annotator:${project}:unsaved:${entry.uuid}`, JSON.stringify({ order: place + 1, ...entry })))"""


def project_of(served: Served) -> str:
    from annotator.ui.access.tokens import Tokens

    return Tokens(served.project / "secret").project


def queue(page: Page, served: Served, *entries: dict) -> None:
    """These wait in the browser, from before this page was opened."""
    page.evaluate(QUEUE, [project_of(served), entries])
    page.reload()
    wait_for_picture(page)


def entry(uuid: str, **more) -> dict:
    return {
        "uuid": uuid,
        "action": "label",
        "image": 1,
        "class": 1,
        "state": 1,
        "source": "click",
        "annotator": "Ann",
    } | more

"""The front door: from `annotator home` on an empty machine to an exported data set, by somebody who knows the truth.

The project is made in the browser of a folder of images, Autopilot asks about all of them, and the finish page exports
them. Nobody types an address or a command after the first one. tests/harness/hour.py --front-door plays it with photos.
"""

import csv
import io
import os
import random
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from annotator.store.database.database import Database
from annotator.store.labels import project_counts
from harness.book import book_of
from harness.child_processes import free_port
from harness.contexts import Contexts
from harness.grids import KIND
from harness.person import wait_until_drawn, wait_until_saved
from harness.served import until
from harness.someone import Someone
from harness.start_page import at_home

PHOTOS = Path("pictures", "animals")  # below the person's home folder
PROJECTS = "annotator-projects"
SCREEN = {"width": 1366, "height": 768}
# Seconds of a person by the keystroke-level model (Card, Moran & Newell, CACM 1980): to decide, point and press; to
# decide and press a key; to type a letter.
CLICK, KEY, LETTER = 1.35 + 1.1 + 0.2, 1.35 + 0.28, 0.28
STARTS = 120_000  # milliseconds for a project to be made and its server to start


@dataclass
class Hand:
    """One press after the other on pages that are no tasks, counted."""

    page: Page
    presses: int = 0  # clicks, and keys that are not text
    letters: int = 0

    def click(self, place: Locator) -> None:
        place.click(timeout=60_000)
        self.presses += 1

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.presses += 1

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.letters += len(text)


@dataclass(frozen=True)
class FirstLabel:
    """What it took until the first label was stored. seconds: of the machine, since the command."""

    presses: int
    letters: int
    seconds: float


def play(
    browser: Contexts,
    home: Path,
    labels: dict[str, set[str]],
    names: list[str],
    say: Callable[[str], object],
    *,
    mouse: bool = True,
    seed: int = 0,
    to_the_end: bool = True,
) -> FirstLabel:
    """Make a project of home / PHOTOS, label all of it and export it; fail where a pair is not as the truth says.

    Args:
        browser: Of the person; nothing of Annotator is kept in it.
        home: The home folder of somebody who has never used this.
        labels: Image name -> names of the classes that it shows.
        names: Of all classes.
        say: Told what it took.
        mouse: Until the first label with the mouse alone, else with the keyboard alone; after it with the mouse.
        seed: Of the presses that are made twice.
        to_the_end: Go on after the first label.
    """
    began = time.monotonic()
    with at_home("--port", free_port(), HOME=home) as command:
        page = browser.page_of(browser.new_context(viewport=SCREEN))
        page.goto(until(lambda: next((line for line in command.stdout if "?key=" in line), None)).strip())
        hand = Hand(page)
        make = make_by_mouse if mouse else make_by_keyboard
        make(hand, home, names)
        expect(page.get_by_label("Your name")).to_be_focused(timeout=STARTS)
        hand.type("Ann")
        hand.press("Enter")
        page.locator(".stage img[data-image]").first.wait_for(timeout=STARTS)
        db = Database(home / PROJECTS / PHOTOS.name)
        book, address = book_of(db, labels), page.evaluate("location.origin")
        person = Someone(page, db.paths.project, address, book, random.Random(seed), mouse=mouse)
        while 1 not in book.given.values():
            person.tasks(1)
        until(lambda: project_counts.count_labels_by_state(db)["present"])
        first = FirstLabel(hand.presses + person.presses, hand.letters, time.monotonic() - began)
        say(in_words(first, mouse))
        if to_the_end:
            person.mouse = True
            finish(person, hand, labels, names)
            tasks, presses = person.kinds.total(), hand.presses + person.presses
            minutes = (time.monotonic() - began) / 60
            say(f"{len(book.given):,} pairs, all as meant, exported: {tasks} tasks {dict(person.kinds)}")
            say(f"{presses} presses, {person.doubles} of them twice, in {minutes:.1f} minutes")
        assert page.troubles == []
    return first


def make_by_mouse(hand: Hand, home: Path, names: list[str]) -> None:
    """Make a project with the mouse; only the classes are typed."""
    page = hand.page
    hand.click(page.get_by_role("link", name="New project"))
    for folder in PHOTOS.parts:
        hand.click(page.get_by_role("button", name=folder, exact=True))
    hand.click(page.get_by_label("One a line, or with commas between them"))
    hand.type(", ".join(names))
    expect(page.get_by_text(f"{len(names)} classes: ")).to_be_visible()
    hand.click(page.get_by_role("button", name="Create project"))


def make_by_keyboard(hand: Hand, home: Path, names: list[str]) -> None:
    """Make a project without the mouse."""
    page = hand.page
    expect(page.get_by_role("link", name="New project")).to_be_visible()
    hand.press("Tab")
    hand.press("Enter")
    expect(page.locator("#path")).to_have_value(str(home))
    hand.type(f"/{PHOTOS.as_posix()}")
    hand.press("Enter")
    expect(page.locator("#classes")).to_be_focused()
    hand.type(", ".join(names))
    expect(page.get_by_text(f"{len(names)} classes: ")).to_be_visible()
    hand.press("Control+Enter")


def finish(person: Someone, hand: Hand, labels: dict[str, set[str]], names: list[str]) -> None:
    """Answer all that Autopilot asks, and export it on the finish page; fail where a pair is not as the truth says."""
    page, book = person.page, person.book
    person.tasks(2 * len(book.truth) * len(book.class_ids))
    expect(page.get_by_role("heading", name="Complete")).to_be_visible()
    assert page.evaluate(KIND) == "", "the last press was about the last task only"
    wait_until_saved(page)
    book.check(person.project)
    truth = {(image, name): name in shown for image, shown in labels.items() for name in names}
    assert exported(export(hand)) == truth


def export(hand: Hand) -> Path:
    """Choose on the Export page what comes first there; the second time it is one press. Returns the zip of that."""
    page = hand.page
    hand.click(page.get_by_role("link", name="Choose how to export"))
    hand.click(page.get_by_test_id("stMain").get_by_role("button", name="Export", exact=True))
    expect(page.get_by_role("link", name="Download labels.zip")).to_be_visible(timeout=60_000)
    wait_until_drawn(page)
    hand.click(page.get_by_test_id("stTopNavSection").filter(has_text="Label"))
    hand.click(page.get_by_role("menuitem", name="Autopilot"))
    expect(page.locator(".finish")).to_contain_text("Export as last time: csv, labels.zip.", timeout=60_000)
    with page.expect_download(timeout=60_000) as download:
        hand.click(page.get_by_role("button", name="Export", exact=True))
    return download.value.path()


def exported(path: Path) -> dict[tuple[str, str], bool]:
    """(image, class) -> whether the image shows it, of each answer in a zip of CSV."""
    with zipfile.ZipFile(path) as files, files.open("labels.csv") as file:
        rows = list(csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")))
    answers = {"1": True, "0": False}
    return {
        (row["image"], name): answers[value] for row in rows for name, value in row.items() if name != "image" and value
    }


def in_words(first: FirstLabel, mouse: bool) -> str:
    presses, by_hand = ("clicks", CLICK) if mouse else ("keys", KEY)
    load, seconds = os.getloadavg()[0], first.presses * by_hand + first.letters * LETTER
    return (
        f"first label: {first.presses} {presses}, {first.letters} letters and {first.seconds:.0f} s of the machine "
        f"(load {load:.1f}, {os.cpu_count()} cores); a person takes about {seconds:.0f} s more"
    )

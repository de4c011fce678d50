"""An hour of two people at a project, by a script that knows the truth: every page, slips and all, until all is done.

    python tests/hour.py IMAGES TRUTH.csv [--images 200] [--seed 0] [--project FOLDER]

One of them has the keyboard, and now and then types a class's name without opening the finder; the other works with the
mouse alone. Both press now and then twice what they mean once.

IMAGES is a folder of images, TRUTH.csv says what they show (image,labels with | between the labels). Everything is done
as a person does it, in Chromium, by keys and by mouse. At the end every image-class pair in the store is what the
script gave last, and what the truth says; the script fails otherwise.
"""

import argparse
import csv
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from contexts import Contexts
from grids import DRAWN, KIND, MARKED, SHOWN, STATES
from person import looked, on_screen, open_page, twice, wait_for_picture, wait_until_saved
from playwright.sync_api import Page
from served import APP, PAGES_ALONE, Served, until

from annotator.benchmark.harness.browser import chromium
from annotator.exchange.setup import set_up
from annotator.store.classes import classes
from annotator.store.classes.classes import KEYS
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import counts as overview
from annotator.store.labels import decisions
from annotator.store.runs import runs

SLIPS = 0.05  # of the keys are wrong at first
TWICE = 0.3  # of the presses are made twice
APART = (0.08, 0.25)  # seconds between the two
TYPED = 0.1  # of the classes are typed where a key would do
LETTERS = 4  # of a name that is typed
TILE_KEYS = KEYS.replace("u", "")  # which is for unsure
GRID_CLASS = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".tiles"));
  return Number(host?.shadowRoot.querySelector(".tiles:not(.skeleton)")?.dataset.class ?? 0);
}"""
THUMBS = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".scroller"));
  return [...host.shadowRoot.querySelectorAll(".thumb[data-image]")].map((tile) => Number(tile.dataset.image));
}"""
SELECTED = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".stage"));
  const image = host?.shadowRoot.querySelector(".stage img[data-image]");
  const chip = host?.shadowRoot.querySelector(".suggestion.selected");
  return image && chip ? [Number(image.dataset.image), Number(chip.dataset.class)] : null;
}"""


@dataclass
class Book:
    """The truth, and what was given last to every image-class pair."""

    truth: dict[int, set[int]]
    class_ids: list[int]
    given: dict[tuple[int, int], int] = field(default_factory=dict)
    actions: Counter[str] = field(default_factory=Counter)
    remarks: list[int] = field(default_factory=list)  # images with a flag and a comment

    def state(self, image: int, class_id: int) -> int:
        return 1 if class_id in self.truth[image] else -1

    def give(self, page: str, image: int, class_id: int, state: int) -> None:
        self.given[image, class_id] = state
        self.actions[page] += 1

    def close(self, image: int, page: str = "annotate") -> None:
        """Nothing else is on this image."""
        for class_id in self.class_ids:
            self.given.setdefault((image, class_id), -1)
        self.actions[page] += 1

    def clear(self, page: str, image: int, class_id: int) -> None:
        del self.given[image, class_id]
        self.actions[page] += 1

    def missing(self, image: int) -> list[int]:
        return [class_id for class_id in sorted(self.truth[image]) if self.given.get((image, class_id)) != 1]

    def wrong(self) -> list[tuple[int, int]]:
        """Pairs whose last answer is not the truth."""
        return [pair for pair, state in self.given.items() if state != self.state(*pair)]

    def complete(self) -> bool:
        return len(self.given) == len(self.truth) * len(self.class_ids)


class Someone:
    """A person with a page of their own, and with the keyboard or the mouse alone."""

    def __init__(self, browser: Contexts, served: Served, name: str, book: Book, chance: random.Random, mouse: bool):
        self.browser, self.served, self.name, self.book, self.chance = browser, served, name, book, chance
        self.mouse = mouse
        self.page: Page = open_page(browser, served, name)
        known = classes.all_classes(Database(served.project))
        self.key_of = {one.id: one.key for one in known}
        self.name_of = {one.id: one.name for one in known}
        self.doubles = 0

    def go(self, path: str) -> Page:
        wait_until_saved(self.page)
        self.page.goto(self.served.address + path)
        return self.page

    # Keys and buttons

    def _press(self, key: str, button: str, *, often: bool = False) -> None:
        """The key, or with the mouse the button, once what is on screen was seen; now and then twice.

        often: what may be pressed twice on purpose, and so never is by mistake
        """
        if not often:
            looked(self.page)
        press = self._click(button) if self.mouse else lambda: self.page.keyboard.press(key)
        if often or self.chance.random() >= TWICE:
            press()
            return
        twice(press, self.chance.uniform(*APART))
        self.doubles += 1

    def _click(self, button: str) -> Callable[[], None]:
        """Clicks where this button is now, whatever comes there."""
        place = self.page.locator(button).locator("visible=true").first
        place.scroll_into_view_if_needed()
        box = place.bounding_box()
        assert box, f"{button} is not on screen"
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

        def click() -> None:
            self.page.mouse.down()
            self.page.mouse.up()

        return click

    def _class(self, class_id: int, *, often: bool = False) -> None:
        self._press(self.key_of[class_id], f".classes .class[data-class='{class_id}']", often=often)

    def _all(self) -> None:
        """Enter, or the button that says so."""
        self._press("Enter", "button[aria-keyshortcuts='Enter']")

    def _undo(self) -> None:
        self._press("Backspace", "button[aria-keyshortcuts='Backspace']", often=True)

    def _type(self, class_id: int) -> bool:
        """The name of a class, quickly and without the finder, which opens by that; Enter takes the class. False, and
        nothing was done, where the letters lead to another one."""
        letters = self.name_of[class_id][:LETTERS].lower()
        if self.mouse or len(letters) < LETTERS or not (letters.isascii() and letters.isalpha()):
            return False
        looked(self.page)
        for letter in letters:
            self.page.keyboard.press(letter)
            self.page.wait_for_timeout(self.chance.uniform(60, 140))
        field = self.page.get_by_label("Find a class", exact=True)
        until(lambda: field.input_value() == letters)
        chosen = self.page.locator(".option[aria-selected='true']").get_attribute("data-class")
        if chosen != str(class_id):
            self.page.keyboard.press("Escape")
            return False
        twice(lambda: self.page.keyboard.press("Enter"), self.chance.uniform(*APART))
        self.book.actions["typed"] += 1
        return True

    # Annotate

    def first_labels(self, count: int) -> None:
        """One label an image, as the tool asks for; some keys are wrong, and most of these are noticed at once."""
        page = self.page
        self._wake()
        for _ in range(count):
            image = self._image()
            wanted = self.book.missing(image)
            if not wanted:
                self._close(image)
                continue
            chosen = self.chance.choice(wanted)
            if self.chance.random() < SLIPS:
                other = self.chance.choice([one for one in self.key_of if one not in self.book.truth[image]])
                self._class(other)
                self._another(image)
                if self.chance.random() < 0.5:  # else it is found out later
                    self._undo()
                    page.locator(f".stage img[data-image='{image}']").wait_for()
                    page.evaluate(DRAWN)
                else:
                    self.book.give("annotate", image, other, 1)
                    continue
            if self.chance.random() >= TYPED or not self._type(chosen):
                self._class(chosen)
            self._another(image)
            self.book.give("annotate", image, chosen, 1)

    def complete_images(self, most: int) -> int:
        """All that is missing on what comes, until nothing comes. Returns how many images were completed."""
        count = 0
        self._wake()
        while count < most and self._something(".stage img[data-image]"):
            every = self.page.get_by_role("button", name="All labels")
            if self.mouse and every.get_attribute("aria-pressed") == "false":
                self._click("button[data-way=all]")()
            image = self._image()
            for class_id in self.book.missing(image):
                self._mark(class_id)
                self.book.give("annotate", image, class_id, 1)
            self._close(image)
            count += 1
        return count

    def _mark(self, class_id: int) -> None:
        """Label and stay; again, as a person would, when the page says that the image is still being loaded."""
        marked = self.page.locator(f".class[data-class='{class_id}'][data-state=present]")
        for _ in range(50):
            if self.mouse:
                self._class(class_id)
            else:
                looked(self.page)
                self.page.keyboard.press(f"Shift+{self.key_of[class_id]}")
            until(lambda: marked.count() or "Nothing was answered" in self.page.locator(".words").inner_text())
            if marked.count():
                return
            self.page.wait_for_timeout(200)
        raise AssertionError(f"class {class_id} cannot be given")

    def _close(self, image: int) -> None:
        self._all()
        self.book.close(image)
        self._another(image)

    def _wake(self) -> None:
        """A page that nobody has touched for half a minute lets go of what it holds. After the first key it asks which
        of it is still free; what somebody else has taken meanwhile gives way to the next image."""
        if self.mouse:
            self.page.mouse.wheel(0, 1)
        else:
            self.page.keyboard.press("Escape")
        self.page.wait_for_load_state("networkidle")

    def _image(self) -> int:
        """The image on screen, which keys are about from the frame on in which it is drawn."""
        wait_for_picture(self.page)
        self.page.evaluate(DRAWN)
        return on_screen(self.page)

    def _another(self, image: int) -> None:
        # A grid that comes next hides the picture and does not take it away.
        until(lambda: not self.page.locator(f".stage img[data-image='{image}']:visible").count())

    def fix(self) -> None:
        """Slips that nobody noticed at once: each image is opened by its address, and the label taken back."""
        for image, class_id in self.book.wrong():
            self.go(f"/annotate?image={image}")
            self.page.locator(f".stage img[data-image='{image}']").wait_for(timeout=60_000)
            looked(self.page)
            self.page.keyboard.press(self.key_of[class_id])
            self.page.locator(f".class[data-class='{class_id}']:not([data-state])").wait_for()
            self.book.clear("fix", image, class_id)
        self.go("/annotate")

    def remark(self) -> None:
        """A flag and a comment on what is on screen, which change no label."""
        page = self.page
        image = self._image()
        page.keyboard.press(",")
        page.keyboard.type("blurred")
        page.keyboard.press("Enter")
        page.keyboard.press(";")
        page.locator("dialog.history[open] input").wait_for()
        page.keyboard.type("taken at dusk?")
        page.keyboard.press("Enter")
        page.locator("dialog.history[open]").get_by_text("taken at dusk?").wait_for()
        page.keyboard.press("Escape")
        self.book.remarks.append(image)

    # Gallery

    def gallery(self, class_id: int) -> None:
        """The images in sight on which nobody has answered a class: those that show it at once, then the others."""
        names = {one.id: one.name for one in classes.all_classes(Database(self.served.project))}
        page = self.go("/gallery?" + urlencode({"open": names[class_id]}))
        if not self._something(".thumb[data-image] img"):
            return
        page.wait_for_load_state("networkidle")
        tiles = page.evaluate(THUMBS)
        for state, presses in ((1, 1), (-1, 2)):
            images = [image for image in tiles if self.book.state(image, class_id) == state]
            for image in images:
                page.locator(f".thumb[data-image='{image}']").click(modifiers=["Control"])
            if not images:
                continue
            page.keyboard.press(".")
            page.keyboard.type(names[class_id])
            for _ in range(presses):
                page.keyboard.press("Enter")
            page.keyboard.press("Control+Enter")
            for image in images:
                self.book.give("gallery", image, class_id, state)
            wait_until_saved(page)
            page.keyboard.press("Escape")

    # Grid, Review, Autopilot

    def grids(self, count: int, path: str = "/grid") -> None:
        """Grids as they come, each tile marked as the truth says."""
        self.go(path)
        for _ in range(count):
            if not self._something(".tiles:not(.skeleton) .tile[data-image]"):
                return
            self._grid("audit" if "audit" in path else "grid")

    def _grid(self, name: str) -> None:
        page = self.page
        page.wait_for_load_state("networkidle")
        grid = until(lambda: page.evaluate(SHOWN))
        page.evaluate(DRAWN)
        class_id = page.evaluate(GRID_CLASS)
        for place, (image, _) in enumerate(grid["tiles"]):
            wanted = self.book.state(image, class_id)
            for _ in range(2):
                if STATES[page.evaluate(SHOWN)["tiles"][place][1]] == wanted:
                    break
                self._press(TILE_KEYS[place], f".tiles:not(.skeleton) .tile[data-index='{place}'] .mark", often=True)
        marked = page.evaluate(SHOWN)
        assert marked["id"] == grid["id"]
        self._press("Enter", "button.decide")
        for image, state in marked["tiles"]:
            self.book.give(name, image, class_id, STATES[state])
        until(lambda: (page.evaluate(SHOWN) or {"id": ""})["id"] != grid["id"])

    def review(self, count: int) -> None:
        """Suggestions, confirmed or rejected one by one."""
        page = self.go("/review")
        for _ in range(count):
            if not self._something(".suggestion.selected"):
                return
            pair = until(lambda: page.evaluate(SELECTED))
            state = self.book.state(*pair)
            answer = ("y", ".answers.first button.yes") if state == 1 else ("n", ".answers.first button.no")
            self._press(*answer)
            self.book.give("review", *pair, state)
            if self.chance.random() < SLIPS:  # changed by mistake, and put right
                self._undo()
                assert page.evaluate(SELECTED) == pair
                self._press(*answer)

    def autopilot(self, count: int) -> None:
        """Whatever comes next."""
        page = self.go("/autopilot")
        for _ in range(count):
            if not self._something("[data-kind]:not([data-kind=''])"):
                return
            page.wait_for_load_state("networkidle")
            kind = page.evaluate(KIND)
            page.evaluate(DRAWN)
            if kind in ("grid", "audit"):
                self._grid("autopilot")
                continue
            image = on_screen(page)
            if kind == "click":
                wanted = self.book.missing(image)
                if wanted:
                    self._class(wanted[0])
                    self.book.give("autopilot", image, wanted[0], 1)
                else:
                    self._all()
                    self.book.close(image, "autopilot")
            else:
                for class_id, state in page.evaluate(MARKED):
                    if state != self.book.state(image, class_id):
                        self._class(class_id)
                marked = page.evaluate(MARKED)
                self._all()
                for class_id, state in marked:
                    self.book.give("autopilot", image, class_id, state)
            self._another(image)

    def _something(self, selector: str) -> bool:
        """Whether something of this kind comes before the page says that there is nothing left."""
        self.page.locator(f"{selector}, .onward a").first.wait_for(timeout=60_000)
        return bool(self.page.locator(selector).count())


def work_through(browser: Contexts, served: Served, truth: dict[int, set[int]], seed: int, say: Callable) -> Book:
    """Two people label everything, page after page; returns what they gave."""
    db = Database(served.project)
    book = Book(truth, [one.id for one in classes.all_classes(db)])
    chance = random.Random(seed)
    ann, ben = (Someone(browser, served, name, book, chance, mouse=name == "Ben") for name in ("Ann", "Ben"))
    share = len(truth) // 10
    for _ in range(2):
        ann.first_labels(share)
        ben.first_labels(share)
    ann.remark()
    say(f"first labels: {dict(book.actions)}")
    if served.python == APP:
        until(lambda: runs.current_run(db))
    for person, work in ((ann, ben.grids), (ben, ann.review), (ann, ben.autopilot), (ben, ann.grids)):
        work(max(2, share // 2))
        person.go("/annotate")
        person.first_labels(2)
        say(f"{work.__name__}: {dict(book.actions)}; {len(book.given)} of {len(truth) * len(book.class_ids)} pairs")
    unanswered = Counter(
        class_id for image in truth for class_id in book.class_ids if (image, class_id) not in book.given
    )
    for class_id, _ in unanswered.most_common(2):
        ann.gallery(class_id)
    say(f"gallery: {dict(book.actions)}")
    ann.fix()
    ben.go("/annotate")
    while not book.complete():
        done = ann.complete_images(share) + ben.complete_images(share)
        say(f"completed {done} more; {len(book.given)} of {len(truth) * len(book.class_ids)} pairs")
        if not done:
            break
    for person in (ann, ben):
        wait_until_saved(person.page)
        assert person.page.troubles == []
        book.actions["pressed twice"] += person.doubles
    return book


def check(served: Served, book: Book) -> None:
    """Every pair of the store is what was given last, and the truth. Raises AssertionError."""
    stored = {(one.image_id, one.class_id): one.state for one in decisions.all_labels(Database(served.project))}
    differ = {pair: (stored.get(pair), book.given.get(pair)) for pair, _ in stored.items() ^ book.given.items()}
    assert not differ, f"(image, class): (stored, given last): {differ}"
    assert book.wrong() == [] and book.complete()
    flagged = [row["id"] for row in overview.flagged(Database(served.project))]
    assert flagged == book.remarks, "a flag is where it was put, and a comment beside it changed no label"


def truth_of(db: Database, labels: dict[str, set[str]]) -> dict[int, set[int]]:
    """The truth by ids. labels: image name -> names of classes."""
    ids = {one.name: one.id for one in classes.all_classes(db)}
    return {one.id: {ids[name] for name in labels[one.name]} for one in images.all_images(db)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("images", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--images", dest="count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--project", type=Path)
    parser.add_argument("--no-worker", action="store_true")
    words = parser.parse_args()
    with words.truth.open(newline="") as file:
        rows = [(row["image"], {name for name in row["labels"].split("|") if name}) for row in csv.DictReader(file)]
    chosen = dict(random.Random(words.seed).sample(rows, words.count))
    with tempfile.TemporaryDirectory() as scratch:
        folder = words.project or Path(scratch)
        (folder / "photos").mkdir(parents=True)
        for name in chosen:
            shutil.copy(words.images / name, folder / "photos" / name)
        names = sorted({name for labels in chosen.values() for name in labels})
        (folder / "classes.txt").write_text("\n".join(names))
        set_up(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
        began, processes = time.monotonic(), []
        try:
            served = Served(folder / "project", processes, python=PAGES_ALONE if words.no_worker else APP)
            truth = truth_of(Database(served.project), chosen)
            with chromium() as started:
                book = work_through(Contexts(started), served, truth, words.seed, lambda text: print(text, flush=True))
            check(served, book)
        finally:
            for process in processes:
                process.terminate()
                process.wait(30)
    pairs = len(book.given)
    seconds = time.monotonic() - began
    print(f"{pairs:,} pairs, all as given and as the truth says, in {seconds:.0f} s: {dict(book.actions)}")


if __name__ == "__main__":
    main()

"""Somebody who answers a project's images page by page, with the keyboard or the mouse alone, and knows the truth."""

import random
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page

from annotator.store.classes import classes
from annotator.store.classes.classes import DEFAULT_KEYS
from annotator.store.database.database import Database
from harness.book import Book
from harness.grids import DRAWN, KIND, MARKED, SHOWN, STATES
from harness.person import (
    looked,
    looked_through,
    on_screen,
    press_at,
    press_twice,
    wait_for_picture,
    wait_until_saved,
)
from harness.served import until

SLIPS = 0.05  # of the keys are wrong at first
TWICE = 0.3  # of the presses are made twice
APART = (0.08, 0.25)  # seconds between the two
TYPED = 0.1  # of the classes are typed where a key would do
LETTERS = 4  # of a name that is typed
TYPING_SECONDS = (0.06, 0.14)  # seconds between two letters
TILE_KEYS = DEFAULT_KEYS.replace("u", "")  # which is for unsure
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


class Someone:
    """A person at a page of theirs, with the keyboard or the mouse alone.

    Attributes:
        presses: Of keys and buttons, each counted once that was meant once.
        doubles: How many of them were made twice.
        kinds: The tasks of Autopilot that were answered.
    """

    def __init__(self, page: Page, project: Path, address: str, book: Book, chance: random.Random, *, mouse: bool):
        """address: of the project's pages, without a path."""
        self.page, self.project, self.address = page, project, address
        self.book, self.chance, self.mouse = book, chance, mouse
        known = classes.load_active_classes(Database(project))
        self.key_of = {one.id: one.key for one in known}
        self.name_of = {one.id: one.name for one in known}
        self.presses = self.doubles = 0
        self.kinds: Counter[str] = Counter()

    def go(self, path: str) -> Page:
        wait_until_saved(self.page)
        self.page.goto(self.address + path)
        return self.page

    # Keys and buttons

    def _press(self, key: str, button: str, *, often: bool = False, many: bool = False) -> None:
        """The key, or with the mouse the button, once what is on screen was seen; now and then twice.

        often: what may be pressed twice on purpose, and so never is by mistake; many: it gives many answers
        """
        if many:
            looked_through(self.page)
        elif not often:
            looked(self.page)
        self.presses += 1
        if not often and self.chance.random() < TWICE:
            press_twice(self.page, self._find(button) if self.mouse else key, self.chance.uniform(*APART))
            self.doubles += 1
        elif self.mouse:
            self._click(button)
        else:
            self.page.keyboard.press(key)

    def _find(self, button: str) -> Locator:
        place = self.page.locator(button).locator("visible=true").first
        place.scroll_into_view_if_needed()
        return place

    def _click(self, button: str) -> None:
        """Click where this button is now, whatever comes there."""
        box = self._find(button).bounding_box()
        assert box, f"{button} is not on screen"
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.page.mouse.down()
        self.page.mouse.up()

    def _class(self, class_id: int, *, often: bool = False) -> None:
        self._press(self.key_of[class_id], f".classes .class[data-class='{class_id}']", often=often)

    def _all(self) -> None:
        """Enter, or the button that says so."""
        self._press("Enter", "button[aria-keyshortcuts='Enter']", many=True)

    def _undo(self) -> None:
        self._press("Backspace", "button[aria-keyshortcuts='Backspace']", often=True)

    def _type(self, class_id: int) -> bool:
        """The name of a class, quickly and without the finder, which opens by that; Enter takes the class. False, and
        nothing was done, where the letters lead to another one."""
        letters = self.name_of[class_id][:LETTERS].lower()
        if self.mouse or len(letters) < LETTERS or not (letters.isascii() and letters.isalpha()):
            return False
        looked(self.page)
        at = time.time()
        for letter in letters:
            press_at(self.page, letter, at)
            at += self.chance.uniform(*TYPING_SECONDS)
        field = self.page.get_by_label("Find a class", exact=True)
        until(lambda: field.input_value() == letters)
        chosen = self.page.locator(".option[aria-selected='true']").get_attribute("data-class")
        if chosen != str(class_id):
            self.page.keyboard.press("Escape")
            return False
        press_twice(self.page, "Enter", self.chance.uniform(*APART))
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
                self._click("button[data-way=all]")
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
        names = {one.id: one.name for one in classes.load_active_classes(Database(self.project))}
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
            page.keyboard.press("c")
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
        self._press("Enter", "button.decide", many=True)
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
        self.go("/autopilot")
        self.tasks(count)

    def tasks(self, most: int) -> None:
        """The tasks of the Autopilot that is open, until none comes."""
        for _ in range(most):
            if not self._something("[data-kind]:not([data-kind=''])"):
                return
            self.page.wait_for_load_state("networkidle")
            self._task(until(lambda: self.page.evaluate(KIND)))

    def _task(self, kind: str) -> None:
        page = self.page
        page.evaluate(DRAWN)
        self.kinds[kind] += 1
        if kind in ("grid", "audit"):
            self._grid("autopilot")
            return
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

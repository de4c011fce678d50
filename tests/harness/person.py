"""A person in front of a page, in a real Chromium: what they see, and what has come of what they did."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conftest import CLASSES, draw
from playwright.sync_api import Locator, Page, expect

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from harness.browser import sign_in_context
from harness.contexts import Contexts
from harness.served import PAGES_ALONE, Served, serving

SEEN_MILLISECONDS, MANY_SEEN_MILLISECONDS = 320, 720  # a little more than press_guard.js wants
LATE_SECONDS = 0.2  # after which a key about the next image may come too soon for press_guard.js
# Keys are about an image or a grid from the frame on in which it is drawn; a page in the background draws none.
DRAWN = """() => new Promise((done) => {
  requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, document.hidden ? 200 : 5000);
})"""
RECORD_FRAMES = """(delay) => {
  window.requestFrame ??= window.requestAnimationFrame.bind(window);
  window.frameTimes = [];
  window.requestAnimationFrame = (act) => {
    const asked = Date.now();
    const draw = () => window.requestFrame((time) => {
      window.frameTimes.push([asked, Date.now()]);
      act(time);
    });
    return delay ? setTimeout(draw, delay) : draw();
  };
}"""
RENEW = 8_000  # milliseconds between two requests for news of a page that nobody touches (item_queue.js)


@contextmanager
def served_photos(
    folder: Path,
    count: int,
    classes: Sequence[str],
    size: tuple[int, int] = (60, 40),
    python: Sequence[str] = PAGES_ALONE,
) -> Iterator[Served]:
    """The app on this many drawn images and these classes (lines of a class file); with python=APP it has a worker."""
    for number in range(count):
        draw(folder / "photos" / f"{number:03}.jpg", CLASSES[number % 3 : number % 3 + 1], seed=number, size=size)
    (folder / "classes.txt").write_text("\n".join(classes) + "\n")
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    with serving(folder / "project", python) as served:
        yield served


def open_page(
    browser: Contexts, served: Served, name: str, path: str = "/annotate", *, clock: bool = False, **more
) -> Page:
    """A page of somebody who has given their name before, in a context of their own; `troubles` collects its errors.

    clock    its timers follow `page.clock`; so they do in all later pages of its context, which nobody else gets then
    """
    options = {"viewport": {"width": 1200, "height": 800}} | more
    context = browser.new_context(**options) if clock else browser.take(**options)
    if clock:
        context.clock.install()
    sign_in_context(context, served.project, served.address, name)
    page = browser.page_of(context)
    kept = {"origin": served.address, "storageTypes": "local_storage,indexeddb,service_workers,cache_storage"}
    tools = page.context.new_cdp_session(page)
    tools.send("Storage.clearDataForOrigin", kept)
    tools.detach()
    page.goto(served.address + path)
    return page


def wait_until_fetched(page: Page) -> None:
    """Until the page fetches nothing for half a second from now on: what comes next is there. `networkidle` is of the
    load of the page, and may have been before the first picture was asked for."""
    quiet, end = 0, time.monotonic() + 60
    while quiet < 10:
        assert time.monotonic() < end, [request.url for request in page.fetching]
        page.wait_for_timeout(50)
        quiet = 0 if page.fetching else quiet + 1


def wait_until_drawn(page: Page) -> None:
    """Until Streamlit's program has ended for now: of a download button that is drawn anew, it forgets the press."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")


def on_screen(page: Page) -> int:
    return int(page.locator(".stage img[data-image]").first.get_attribute("data-image"))


def wait_for_picture(page: Page) -> None:
    page.locator(".stage img[data-image]").first.wait_for(timeout=60_000)


def wait_for_another(page: Page, image_id: int) -> None:
    """Until something else than this image is on screen, in time for the next key to be about it: where the image comes
    late, the page takes a key at once for one about the last image."""
    began = time.monotonic()
    expect(page.locator(f".stage img[data-image='{image_id}']")).to_have_count(0)
    wait_for_picture(page)
    page.evaluate(DRAWN)
    if time.monotonic() - began > LATE_SECONDS:
        looked(page)


def wait_for_image(page: Page, image_id: int) -> None:
    page.locator(f".stage img[data-image='{image_id}']").wait_for()


def looked(page: Page) -> None:
    """Until the image has been on screen for so long that a key is about it, and not a hurried one about the last."""
    _look(page, SEEN_MILLISECONDS)


def looked_around(page: Page) -> None:
    """The same where one press gives many answers: the pointer moves over what is there meanwhile."""
    looked(page)
    page.mouse.move(2, 2)
    page.mouse.move(62, 2)


def looked_through(page: Page) -> None:
    """The same with the hands off: until a press that gives many answers can be about all that is there."""
    _look(page, MANY_SEEN_MILLISECONDS)


def _look(page: Page, milliseconds: int) -> None:
    """Wait as long by the clock of the page, from the frame that shows what is there (press_guard.js)."""
    page.evaluate(DRAWN)
    page.evaluate("window.since = performance.now()")
    page.wait_for_function("(milliseconds) => performance.now() - window.since > milliseconds", arg=milliseconds)


def press_at(page: Page, press: str | Locator, at: float) -> None:
    """Press a key or click a button, with this time (seconds since 1970) as that of its events, however late they come:
    the browser takes the time of a press from whoever sends it, so that a busy machine changes no pause between two."""
    _send_press(page, press if isinstance(press, str) else _find_center(press), at)


def press_twice(page: Page, press: str | Locator, apart: float, *, is_seen: bool = False) -> None:
    """Press a key or a button twice, so many seconds apart by the times of the events, as a hand does that trembles or
    does not trust the first press. The second click is where the button was at the first.

    is_seen: the time between the two counts from the frame that shows what the first press has brought
    """
    what = press if isinstance(press, str) else _find_center(press)
    if is_seen:
        record_frames(page)
    at = time.time()
    _send_press(page, what, at)
    if is_seen:
        at = wait_for_frame(page, at)
    time.sleep(max(0.0, at + apart - time.time()))
    _send_press(page, what, at + apart)


def record_frames(page: Page, milliseconds: int = 0) -> None:
    """Record the frames that the page asks for, each so much later than it would be."""
    page.evaluate(RECORD_FRAMES, milliseconds)


def wait_for_frame(page: Page, at: float) -> float:
    """When the first frame that the page has asked for since then was drawn, in seconds since 1970."""
    drawn = "(at) => window.frameTimes.find(([asked]) => asked >= at)?.[1]"
    return page.wait_for_function(drawn, arg=1000 * at, polling=50).json_value() / 1000


def _find_center(button: Locator) -> tuple[float, float]:
    """The middle of a button, to which the pointer moves."""
    box = button.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    button.page.mouse.move(x, y)
    return x, y


def _send_press(page: Page, what: str | tuple[float, float], at: float) -> None:
    tools = page.context.new_cdp_session(page)
    if isinstance(what, str):
        about = {"key": what, "timestamp": at, **_describe_key(what)}
        tools.send("Input.dispatchKeyEvent", {"type": "keyDown", **about})
        tools.send("Input.dispatchKeyEvent", {"type": "keyUp", **about})
    else:
        about = {"x": what[0], "y": what[1], "button": "left", "clickCount": 1, "timestamp": at}
        tools.send("Input.dispatchMouseEvent", {"type": "mousePressed", **about})
        tools.send("Input.dispatchMouseEvent", {"type": "mouseReleased", **about})
    tools.detach()


def _describe_key(name: str) -> dict:
    """The rest of what Chromium is told of Enter, the space bar, a digit or a letter."""
    if name == "Enter":
        return {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
    code = "Space" if name == " " else f"Digit{name}" if name.isdigit() else f"Key{name.upper()}"
    return {"code": code, "windowsVirtualKeyCode": ord(name.upper()), "text": name}


def wait_until_saved(page: Page, count: int | None = None) -> None:
    """Until nothing waits to be saved, and this many decisions (undos count) have been since the page was opened."""
    foot = page.locator(".foot")
    expect(foot).to_have_attribute("data-waiting", "0", timeout=60_000)
    if count is not None:
        expect(foot).to_have_attribute("data-saved", str(count), timeout=60_000)


def decided(served: Served, name: str) -> list[dict]:
    """The rows of this person's decisions, oldest first."""
    db = Database(served.project)
    return db.rows("SELECT * FROM decision WHERE annotator = ? ORDER BY id", [name])


def labels_of(served: Served, image_id: int) -> dict[int, int]:
    """Class -> state of this image, as the store has it."""
    return {one.class_id: one.state for one in decisions.load_labels(Database(served.project), [image_id])}


class Scribe:
    """Presses keys and keeps its own book of what the store must hold in the end."""

    def __init__(self, page: Page):
        self.page = page
        self.labels: dict[int, dict[int, int]] = {}
        self.last = ""

    def press(self, *keys: str, leaves: bool = True) -> int:
        """These keys, about the image on screen, whose id is returned."""
        wait_for_picture(self.page)
        if keys[0] in ("Enter", self.last):  # about what is seen, and no slip: a person looks first
            looked_around(self.page)
        self.last = keys[-1]
        image_id = on_screen(self.page)
        for key in keys:
            self.page.keyboard.press(key)
        if leaves:
            wait_for_another(self.page, image_id)
        return image_id

    def write(self, image_id: int, **states: int) -> None:
        self.labels.setdefault(image_id, {}).update({int(name[1:]): state for name, state in states.items()})


def press_class_keys(page: Page, *keys: str) -> list[tuple[int, int]]:
    """Label with these keys: (image, class) of each, once it has been looked at."""
    given = []
    for key in keys:
        wait_for_picture(page)
        looked(page)
        given.append((on_screen(page), int(key)))
        page.keyboard.press(key)
        wait_for_another(page, given[-1][0])
    return given


def list_stored_cells(served: Served, name: str) -> list[tuple[int, int]]:
    return [(row["image_id"], row["class_id"]) for row in decided(served, name)]

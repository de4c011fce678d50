"""People in front of a real Chromium, one browser each: how long from a key to the next image, and what was saved."""

import random
import threading
import time
from typing import TYPE_CHECKING

from harness.browser import open_chromium
from typing_extensions import override

from benchmarks.faults.simulated_pages import SentDecisions
from benchmarks.interface import presses
from benchmarks.interface.probe import PROBE_SCRIPT

if TYPE_CHECKING:
    from playwright.sync_api import Response


class Visitor(threading.Thread):
    """A simulated person who presses a class's key at intervals until told to end.

    Args:
        cookie: The name and value of their session.
        sent: Records what the page sends, and what the server acknowledges.
        milliseconds: A list of the times from each key to the frame with the next image.
    """

    def __init__(self, number: int, address: str, cookie: tuple[str, str], every: float, sent: SentDecisions):
        super().__init__(name=f"visitor {number}", daemon=True)
        self._number, self._address, self._cookie, self._every = number, address, cookie, every
        self._sent, self._ending = sent, threading.Event()
        self.ready = threading.Event()
        self.milliseconds: list[float] = []
        self.trouble: Exception | None = None

    def end(self) -> None:
        """Press no more keys."""
        self._ending.set()

    @override
    def run(self) -> None:
        try:
            self._work()
        except Exception as error:  # reported at the end
            self.trouble = error
        finally:
            self.ready.set()

    def _work(self) -> None:
        chance = random.Random(self._number)
        with open_chromium() as browser:
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            context.add_init_script(PROBE_SCRIPT)
            context.add_cookies([{"name": self._cookie[0], "value": self._cookie[1], "url": self._address}])
            page = context.new_page()
            page.on("response", self._record_response)
            page.goto(f"{self._address}/annotate")
            page.locator(".stage img[data-image]").first.wait_for(timeout=120_000)
            page.evaluate("what => { benchmark.watch = what; }", "picture")
            page.evaluate("benchmark.ready()")
            for number in range(presses.WARM_UP):
                presses.time_press(page, presses.press_class_key, number, self._every)
            self.ready.set()
            while not self._ending.is_set():
                began = time.monotonic()
                pause = self._every * chance.uniform(0.5, 1.5)
                self.milliseconds.append(presses.time_press(page, presses.press_class_key, chance.randrange(8), pause))
                self._ending.wait(max(0.0, began + pause - time.monotonic()))
            page.get_by_text("All saved", exact=True).wait_for(timeout=60_000)

    def _record_response(self, response: "Response") -> None:
        """Record a request that stores decisions, and its answer."""
        if not response.url.endswith("/api/decisions"):
            return
        sent = response.request.post_data_json or {"decisions": []}
        for entry in sent["decisions"]:
            self._sent.entries[entry["uuid"]] = entry
        if response.ok:
            said = response.json()
            self._sent.acknowledged.update(said["saved"])
            self._sent.refused.update(said["refused"])

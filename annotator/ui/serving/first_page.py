"""Whether a page of this server has shown its first image, for which all that is not needed for it waits."""

import threading
import time

MAX_WAIT_SECONDS = 3.0  # for a browser: none may come
SETTLING_SECONDS = 0.5  # after the first image: the page is loading the next ones

_image_sent = threading.Event()


def mark_image_sent() -> None:
    _image_sent.set()


def wait_for_first_page(stop: threading.Event, max_seconds: float = MAX_WAIT_SECONDS) -> None:
    """Wait until a page has shown an image, `stop` is set, or MAX_WAIT_SECONDS are over."""
    until = time.monotonic() + max_seconds
    while time.monotonic() < until and not stop.wait(0.05):
        if _image_sent.is_set():
            stop.wait(min(SETTLING_SECONDS, max_seconds))
            return

"""A real Chromium or Chrome, wherever it is installed, started without its own network traffic."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.ui.access.access_keys import build_access_cookie, build_name_cookie_name
from annotator.ui.shared.navigation import PAGES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Playwright

CHROMIUM_VARIABLE = "ANNOTATOR_CHROMIUM"
PATIENCE_MILLISECONDS = 60_000  # milliseconds to wait for a state of a page: on a busy machine all takes long
BROWSER_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
# The first two are pages that every new window loads for its address bar: two thirds of what a window costs. The others
# are what Playwright switches off, repeated because Chromium obeys only the last --disable-features.
FEATURES_OFF = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
)
CHROMIUM_ARGUMENTS = (
    f"--disable-features={','.join(FEATURES_OFF)}",
    "--no-sandbox",  # containers and CI run as root, where Chromium refuses to start with it
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium(playwrights_own: str | None = None) -> str:
    """Return the path of a Chromium or Chrome: the one that ANNOTATOR_CHROMIUM names, else an installed one.

    Args:
        playwrights_own: The place of Playwright's own browser; the last choice.

    Raises:
        AnnotatorError: None is installed; the message says how to install one.
    """
    named = os.environ.get(CHROMIUM_VARIABLE)
    if named:
        if path := shutil.which(named):
            return path
        raise AnnotatorError(
            f"{CHROMIUM_VARIABLE} names {named!r}, which is not a program. Correct the variable, or unset it."
        )
    for name in BROWSER_PROGRAMS:
        if path := shutil.which(name):
            return path
    for path in (*MAC_PLACES, playwrights_own):
        if path and Path(path).exists():
            return path
    raise AnnotatorError(
        f"No Chromium or Chrome was found (looked for {', '.join(BROWSER_PROGRAMS)}).\n"
        "    Get one with: playwright install chromium\n"
        "    or with the package of your system (Debian: apt install chromium), or name one in "
        f"{CHROMIUM_VARIABLE}=/path/to/it"
    )


@contextmanager
def open_chromium() -> Iterator["Browser"]:
    """Start a headless browser, and close it at the end of the block.

    Raises:
        AnnotatorError: Playwright or a browser is missing.
    """
    try:
        from playwright.sync_api import Error, expect
    except ImportError as error:
        raise AnnotatorError(
            'A browser is driven with Playwright, which is not installed. Get it with: pip install -e ".[test]"'
        ) from error
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with _open_playwright() as playwright:
        path = find_chromium(playwright.chromium.executable_path)
        try:
            browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_ARGUMENTS))
        except Error as error:
            raise AnnotatorError(f"{path} could not be started: {error.message}") from error
        try:
            yield browser
        finally:
            browser.close()


def sign_in_context(context: "BrowserContext", project: Path, address: str, name: str | None = None) -> None:
    """Sign a browser context in to the app at this address, and set the annotator's name."""
    key, value = build_access_cookie(project, address)
    context.add_cookies([{"name": key, "value": value, "url": address}])
    if name is not None:
        set_name_cookie(context, project, address, name)


def set_name_cookie(context: "BrowserContext", project: Path, address: str, name: str) -> None:
    """Set the annotator's name in this project."""
    context.add_cookies([{"name": build_name_cookie_name(Database(project)), "value": name, "url": address}])


def open_by_menu(page: "Page", title: str) -> None:
    """Open another page of the app as a person does: by its menu at the top."""
    menu = next(entry.group for entry in PAGES if entry.title == title)
    page.get_by_test_id("stTopNavSection").filter(has_text=menu).click()
    page.get_by_role("menuitem", name=title).click()


@contextmanager
def _open_playwright() -> Iterator["Playwright"]:
    # Playwright allows one instance a thread: nested calls share it.
    running = getattr(_threads, "playwright", None)
    if running is not None:
        yield running
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        _threads.playwright = playwright
        try:
            yield playwright
        finally:
            _threads.playwright = None


_threads = threading.local()

"""One Chromium for all tests of a process, and its contexts and pages: whoever visits a page next has its scripts
already, compiled in the process that shows it. A page of ours takes a third of the time so."""

from contextlib import suppress

from playwright.sync_api import Browser, BrowserContext, Error, Page

from harness.browser import PATIENCE_MILLISECONDS

# What a test may do to a page that the next one must not meet: such a page is closed with its test.
LASTING = (
    "add_init_script",
    "emulate_media",
    "expose_function",
    "on",
    "once",
    "pause",
    "route",
    "route_web_socket",
    "set_default_timeout",
    "set_extra_http_headers",
    "set_viewport_size",
)
MODIFIERS = ("Shift", "Control", "Alt", "Meta")
LEAVE = "() => { sessionStorage.clear(); location.replace('about:blank'); }"  # in the same process


class Contexts:
    """The contexts of the tests' browser: a person gets one that nobody is using, emptied of everything but the cache
    of scripts, and in it a page that has shown ours before, if there is one."""

    def __init__(self, browser: Browser):
        self.browser = browser
        self._free: dict[str, list[BrowserContext]] = {}
        self._used: list[tuple[str, BrowserContext]] = []

    def new_context(self, **options) -> BrowserContext:
        """A context that has never been used, closed at the end of the test."""
        context = self._new_context(options)
        self._used.append(("", context))
        return context

    def _new_context(self, options: dict) -> BrowserContext:
        context = self.browser.new_context(**options)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        return context

    def new_page(self, **options) -> Page:
        return self.new_context(**options).new_page()

    def take(self, **options) -> BrowserContext:
        kind = repr(sorted(options.items()))
        free = self._free.setdefault(kind, [])
        context = free.pop() if free else self._new_context(options)
        self._used.append((kind, context))
        return context

    def page_of(self, context: BrowserContext) -> Page:
        """The page that was left open in this context, or a new one. `troubles` collects what is thrown in it, and
        `fetching` are its requests that are not answered."""
        if context.pages:
            [page] = context.pages
        else:
            page = context.new_page()
            page.on("pageerror", lambda error: page.troubles.append(str(error)))
            page.on("request", lambda request: page.fetching.add(request))
            page.on("requestfinished", lambda request: page.fetching.discard(request))
            page.on("requestfailed", lambda request: page.fetching.discard(request))
            for name in LASTING:
                setattr(page, name, _noted(page, getattr(page, name)))
        page.troubles, page.fetching, page.altered = [], set(), False
        return page

    def give_back(self, context: BrowserContext) -> None:
        """Its pages are closed or emptied, and the next one to take it finds nothing of them."""
        [place] = [place for place, (_, used) in enumerate(self._used) if used is context]
        kind, _ = self._used.pop(place)
        if not kind:
            context.close()
            return
        context.set_offline(False)
        context.unroute_all()
        for place, page in enumerate(context.pages):
            reusable = place == 0 and not getattr(page, "altered", True)
            if not (reusable and _emptied(page)):
                page.close()
        context.clear_cookies()
        self._free[kind].append(context)

    def give_all_back(self) -> None:
        for _, context in list(self._used):
            self.give_back(context)


def _emptied(page: Page) -> bool:
    """Whether the page could be left: one with a question open cannot, nor one that has crashed."""
    with suppress(Error):
        for key in MODIFIERS:  # a test may have failed with one held down
            page.keyboard.up(key)
        page.evaluate(LEAVE)
        page.wait_for_url("about:blank", timeout=5_000)
        return True
    return False


def _noted(page: Page, method):
    def noted(*arguments, **named):
        page.altered = True
        return method(*arguments, **named)

    return noted

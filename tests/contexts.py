"""One Chromium for all tests of a process, and its contexts: whoever visits a page next has its scripts already."""

from playwright.sync_api import Browser, BrowserContext, Page


class Contexts:
    """The contexts of the tests' browser: a person gets one that nobody is using, emptied of everything but the cache
    of scripts. A page of ours is there in half the time so."""

    def __init__(self, browser: Browser):
        self.browser = browser
        self._free: dict[str, list[BrowserContext]] = {}
        self._used: list[tuple[str, BrowserContext]] = []

    def new_context(self, **options) -> BrowserContext:
        """A context that has never been used, closed at the end of the test."""
        context = self.browser.new_context(**options)
        self._used.append(("", context))
        return context

    def new_page(self, **options) -> Page:
        return self.new_context(**options).new_page()

    def take(self, **options) -> BrowserContext:
        kind = repr(sorted(options.items()))
        free = self._free.setdefault(kind, [])
        context = free.pop() if free else self.browser.new_context(**options)
        self._used.append((kind, context))
        return context

    def give_back(self, context: BrowserContext) -> None:
        """Its pages are closed, and the next one to take it finds nothing of them."""
        [place] = [place for place, (_, used) in enumerate(self._used) if used is context]
        kind, _ = self._used.pop(place)
        if not kind:
            context.close()
            return
        for page in context.pages:
            page.close()
        context.set_offline(False)
        context.unroute_all()
        context.clear_cookies()
        self._free[kind].append(context)

    def give_all_back(self) -> None:
        for _, context in list(self._used):
            self.give_back(context)

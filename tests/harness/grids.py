"""A person in front of a grid or of Autopilot: what is on screen, and what the store has of it."""

from playwright.sync_api import Page

from harness.contexts import Contexts
from harness.person import DRAWN, decided, looked_around, open_page, wait_until_fetched
from harness.served import Served, until

STATES = {"present": 1, "absent": -1, "unsure": 0}
GRID = ".tiles:not(.skeleton)"
SHOWN = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".tiles"));
  const grid = host?.shadowRoot.querySelector(".tiles:not(.skeleton)");
  if (!grid) return null;
  const tiles = [...grid.querySelectorAll(".tile")].map((tile) => [Number(tile.dataset.image), tile.dataset.state]);
  return { id: grid.dataset.grid, start: grid.dataset.start, tiles };
}"""

# Which kind of action Autopilot shows; "" while it shows none.
KIND = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector("[data-kind]"));
  return host?.shadowRoot.querySelector("[data-kind]").dataset.kind ?? "";
}"""

# [class, state] of each class of the image on screen.
MARKED = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".class"));
  const all = [...host.shadowRoot.querySelectorAll(".classes .class")];
  return all.map((one) => [Number(one.dataset.class), ["present", "guessed"].includes(one.dataset.state) ? 1 : -1]);
}"""


def open_grid(browser: Contexts, served: Served, name: str, path: str = "/grid", **more) -> Page:
    page = open_page(browser, served, name, path, **more)
    page.locator(GRID).wait_for(timeout=60_000)
    wait_until_fetched(page)  # the grids that come next are there
    return page


def shown(page: Page) -> dict:
    """The grid on screen, and drawn: its id, how it began, and [image, state] of each tile."""
    grid = until(lambda: page.evaluate(SHOWN))
    page.evaluate(DRAWN)
    return grid


def after(page: Page, key: str, before: str) -> dict:
    """The grid that this key brings in place of the one with the id `before`, once that has been looked at."""
    looked_around(page)
    page.keyboard.press(key)
    return until(lambda: (now := shown(page))["id"] != before and now)


def cells(grid: dict) -> list[tuple[int, int]]:
    return [(image, STATES[state]) for image, state in grid["tiles"]]


def saved(served: Served, name: str) -> list[list[tuple[int, int]]]:
    """(image, state) of each batch of this person, in the order in which they were given; none that was undone."""
    rows = decided(served, name)
    undone = {row["undoes"] for row in rows if row["action"] == "undo"}
    batches: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        if row["action"] == "label" and row["id"] not in undone:
            batches.setdefault(row["batch"], []).append((row["image_id"], row["state"]))
    return list(batches.values())

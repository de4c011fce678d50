"""The table of pages in menu order, one line per page."""

from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec

from annotator.roles import Right


class Menu(StrEnum):
    """The top menus in order."""

    LABEL = "Label"
    LOOK = "Look"
    CHECK = "Check"
    DATA = "Data"
    PROJECT = "Project"


MENUS_NEEDING_ANSWERS = (Menu.LOOK, Menu.CHECK)
"""Menus with nothing to look at before the first answer."""


@dataclass(frozen=True)
class PageEntry:
    """One page of the app."""

    # file in pages/, URL path, and component folder
    name: str
    title: str
    icon: str
    group: Menu
    right: Right = Right.LOOK
    # shown in its menu
    listed: bool = True


# The first one is what the bare address shows.
PAGES = (
    PageEntry("autopilot", "Autopilot", ":material/auto_awesome:", Menu.LABEL, Right.ANSWER),
    PageEntry("annotate", "Annotate", ":material/touch_app:", Menu.LABEL, Right.ANSWER),
    PageEntry("grid", "Grid", ":material/grid_view:", Menu.LABEL, Right.ANSWER),
    PageEntry("review", "Review", ":material/fact_check:", Menu.LABEL, Right.ANSWER),
    PageEntry("speed_test", "Speed test", ":material/timer:", Menu.LABEL, Right.ANSWER, listed=False),
    PageEntry("gallery", "Gallery", ":material/photo_library:", Menu.LOOK),
    PageEntry("map", "Map", ":material/bubble_chart:", Menu.LOOK),
    PageEntry("progress", "Progress", ":material/monitoring:", Menu.CHECK),
    PageEntry("certificate", "Certificate", ":material/verified:", Menu.CHECK),
    PageEntry("agreement", "Agreement", ":material/groups:", Menu.CHECK, Right.REVIEW),
    PageEntry("people", "People", ":material/badge:", Menu.CHECK, Right.ANSWER),
    PageEntry("images", "Images", ":material/photo_library:", Menu.DATA, Right.OWN),
    PageEntry("events", "Events", ":material/burst_mode:", Menu.DATA, Right.OWN),
    PageEntry("classes", "Classes", ":material/category:", Menu.DATA, Right.OWN),
    PageEntry("imports", "Import", ":material/upload:", Menu.DATA, Right.OWN),
    PageEntry("export", "Export", ":material/download:", Menu.DATA, Right.REVIEW),
    PageEntry("settings", "Settings", ":material/tune:", Menu.PROJECT, Right.OWN),
    PageEntry("members", "Members", ":material/group:", Menu.PROJECT, Right.OWN),
    PageEntry("assignment", "Assignment", ":material/assignment_ind:", Menu.PROJECT, Right.OWN, listed=False),
)
FIRST_PAGE = PAGES[0]


def build_titles_and_urls() -> dict[str, tuple[str, str]]:
    """Return page name -> (title, relative URL) for all pages."""
    return {page.name: (page.title, page.name if page is not FIRST_PAGE else "./") for page in PAGES}


def find_page_module(name: str) -> str:
    """Return the dotted name of pages/NAME.py or pages/NAME/NAME_page.py."""
    module = f"annotator.ui.pages.{name}"
    spec = find_spec(module)
    has_folder = spec is not None and spec.submodule_search_locations is not None
    return f"{module}.{name}_page" if has_folder else module

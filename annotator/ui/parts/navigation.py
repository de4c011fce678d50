"""The pages of the app in the order of the menus at the top. A page is one line here and one file in pages/."""

from dataclasses import dataclass
from enum import StrEnum

from annotator.roles import Right


class Menu(StrEnum):
    """The menus at the top, in their order."""

    LABEL = "Label"
    LOOK = "Look"
    CHECK = "Check"
    DATA = "Data"
    PROJECT = "Project"


MENUS_NEEDING_ANSWERS = (Menu.LOOK, Menu.CHECK)
"""Menus with nothing to look at before the first answer."""


@dataclass(frozen=True)
class PageEntry:
    """One page of the app.

    `name` is its file in pages/, its path in the address and, of a hot page, its folder in components/.

    Attributes:
        group: The menu that lists it.
        right: The right that a member needs to open it.
        listed: Its menu shows it; a page that is not listed is reached from other pages.
    """

    name: str
    title: str
    icon: str
    group: Menu
    right: Right = Right.LOOK
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
    """Return title and relative address of each page, by name. Streamlit knows its first page as "./" only."""
    return {page.name: (page.title, page.name if page is not FIRST_PAGE else "./") for page in PAGES}

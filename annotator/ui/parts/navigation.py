"""The pages of the app in the order of the menus at the top. A page is one line here and one file in pages/."""

from dataclasses import dataclass
from enum import StrEnum

from annotator.roles import Right


class Group(StrEnum):
    """The menus at the top, in their order."""

    LABEL = "Label"
    LOOK = "Look"
    CHECK = "Check"
    DATA = "Data"
    PROJECT = "Project"


SHOW_ANSWERS = (Group.LOOK, Group.CHECK)
"""Menus with nothing to look at before the first answer."""


@dataclass(frozen=True)
class Entry:
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
    group: Group
    right: Right = Right.LOOK
    listed: bool = True


# The first one is what the bare address shows.
PAGES = (
    Entry("autopilot", "Autopilot", ":material/auto_awesome:", Group.LABEL, Right.ANSWER),
    Entry("annotate", "Annotate", ":material/touch_app:", Group.LABEL, Right.ANSWER),
    Entry("grid", "Grid", ":material/grid_view:", Group.LABEL, Right.ANSWER),
    Entry("review", "Review", ":material/fact_check:", Group.LABEL, Right.ANSWER),
    Entry("speed_test", "Speed test", ":material/timer:", Group.LABEL, Right.ANSWER, listed=False),
    Entry("gallery", "Gallery", ":material/photo_library:", Group.LOOK),
    Entry("map", "Map", ":material/bubble_chart:", Group.LOOK),
    Entry("progress", "Progress", ":material/monitoring:", Group.CHECK),
    Entry("certificate", "Certificate", ":material/verified:", Group.CHECK),
    Entry("agreement", "Agreement", ":material/groups:", Group.CHECK, Right.REVIEW),
    Entry("people", "People", ":material/badge:", Group.CHECK, Right.ANSWER),
    Entry("images", "Images", ":material/photo_library:", Group.DATA, Right.OWN),
    Entry("events", "Events", ":material/burst_mode:", Group.DATA, Right.OWN),
    Entry("classes", "Classes", ":material/category:", Group.DATA, Right.OWN),
    Entry("imports", "Import", ":material/upload:", Group.DATA, Right.OWN),
    Entry("export", "Export", ":material/download:", Group.DATA, Right.REVIEW),
    Entry("settings", "Settings", ":material/tune:", Group.PROJECT, Right.OWN),
    Entry("members", "Members", ":material/group:", Group.PROJECT, Right.OWN),
    Entry("assignment", "Assignment", ":material/assignment_ind:", Group.PROJECT, Right.OWN, listed=False),
)
FIRST = PAGES[0]


def titles_and_addresses() -> dict[str, tuple[str, str]]:
    """Return title and relative address of each page, by name. Streamlit knows its first page as "./" only."""
    return {page.name: (page.title, page.name if page is not FIRST else "./") for page in PAGES}

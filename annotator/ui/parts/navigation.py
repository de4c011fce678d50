"""The pages of the app in the order of the navigation bar. A page is one line here and one file in pages/."""

from dataclasses import dataclass

from annotator.roles import Right


@dataclass(frozen=True)
class Entry:
    """One page of the app.

    `name` is its file in pages/, its path in the address and, of a hot page, its folder in components/.

    Attributes:
        listed: The navigation bar shows it; a page that is not listed is reached from other pages.
        right: The right that a member needs to open it.
    """

    name: str
    title: str
    icon: str
    listed: bool = True
    right: Right = Right.LOOK


# The first one is what the bare address shows.
PAGES = (
    Entry("annotate", "Annotate", ":material/touch_app:", right=Right.ANSWER),
    Entry("autopilot", "Autopilot", ":material/auto_awesome:", right=Right.ANSWER),
    Entry("grid", "Grid", ":material/grid_view:", right=Right.ANSWER),
    Entry("review", "Review", ":material/fact_check:", right=Right.ANSWER),
    Entry("gallery", "Gallery", ":material/photo_library:"),
    Entry("map", "Map", ":material/bubble_chart:"),
    Entry("progress", "Progress", ":material/monitoring:"),
    Entry("certificate", "Certificate", ":material/verified:"),
    Entry("imports", "Import", ":material/upload:", right=Right.OWN),
    Entry("export", "Export", ":material/download:", right=Right.REVIEW),
    Entry("images", "Images", ":material/photo_library:", right=Right.OWN),
    Entry("classes", "Classes", ":material/category:", right=Right.OWN),
    Entry("settings", "Settings", ":material/tune:", right=Right.OWN),
    Entry("assignment", "Assignment", ":material/assignment_ind:", listed=False, right=Right.OWN),
    Entry("agreement", "Agreement", ":material/groups:", listed=False, right=Right.REVIEW),
    Entry("people", "People", ":material/badge:", listed=False, right=Right.ANSWER),
    Entry("members", "Members", ":material/group:", listed=False, right=Right.OWN),
    Entry("speed_test", "Speed test", ":material/timer:", listed=False, right=Right.ANSWER),
)


def titles_and_addresses() -> dict[str, tuple[str, str]]:
    """Return title and relative address of each page, by name. Streamlit knows its first page as "./" only."""
    return {page.name: (page.title, page.name if page is not PAGES[0] else "./") for page in PAGES}

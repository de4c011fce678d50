"""The orders of the Gallery, each declared once: SORTS is the table.

A line of it determines what a request may ask for (ui/routes/gallery_requests.py), the words on the page and its part
of the address (components/gallery/filter.js), and whether the list would tell a blind reader too much.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sort:
    """One order of images.

    Attributes:
        name: In requests and addresses.
        label: What the page calls it.
        reveals_labels: The order tells what is known of images. True unless it follows from files alone: people who are
            still to answer images blind do not find these in such a list.
        by_worker: The worker finds the values out after images are registered, so that the list changes meanwhile.
        measure: The number of how images look (store/gallery/appearance_columns.py) that it sorts by; "": by another.
        in_words: That number as a tile shows it.
    """

    name: str
    label: str
    reveals_labels: bool = True
    by_worker: bool = False
    measure: str = ""
    in_words: Callable[[float], str] = str


def percent(share: float) -> str:
    """Return a share in words."""
    return f"{share:.0%}"


def whole(number: float) -> str:
    """Return a number without a fraction."""
    return f"{number:,.0f}"


def pixels(number: float) -> str:
    """Return a number of pixels in words."""
    return f"{number:.0f} px"


SORTS = (
    Sort("name", "Name", reveals_labels=False),
    Sort("decided", "Last change"),
    Sort("captured", "Capture time", reveals_labels=False),
    Sort("labels", "Number of labels"),
    Sort("probability", "Probability of"),
    Sort("like", "Like an image", reveals_labels=False, by_worker=True),
    Sort("brightness", "Brightness", reveals_labels=False, by_worker=True, measure="brightness", in_words=percent),
    Sort("sharpness", "Sharpness", reveals_labels=False, by_worker=True, measure="sharpness", in_words=whole),
    Sort("twins", "Twins side by side", reveals_labels=False, by_worker=True),
    Sort("size", "Shorter side", reveals_labels=False, by_worker=True, measure="shorter_side", in_words=pixels),
)
BY_NAME = {one.name: one for one in SORTS}

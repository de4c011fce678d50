"""The orders of the Gallery, each declared once: SORTS is the table.

A line of it, or of the facts (image_facts.py), determines what a request may ask for (ui/routes/gallery_requests.py),
the words on the page and its part of the address (components/gallery/filter_bar.js), and whether the list would tell a
blind reader too much.
"""

from dataclasses import dataclass

from annotator.snapshot.image_facts import FACTS, Fact

COLUMN_SORT = "column"


@dataclass(frozen=True)
class Sort:
    """One order of images.

    Attributes:
        name: In requests and addresses.
        label: What the page calls it.
        reveals_labels: The order tells what is known of images. True unless it follows from files alone: people who are
            still to answer images blind do not find these in such a list.
        by_worker: The worker finds the values out after images are registered, so that the list changes meanwhile.
        imported: The order changes with imports.
    """

    name: str
    label: str
    reveals_labels: bool = True
    by_worker: bool = False
    imported: bool = False


def build_fact_sort(fact: Fact) -> Sort:
    """Return the order by a fact."""
    return Sort(fact.name, fact.label, fact.reveals_labels, fact.by_worker, fact.imported)


SORTS = (
    Sort("name", "Name", reveals_labels=False),
    Sort("decided", "Last change"),
    Sort("labels", "Number of labels"),
    Sort("probability", "Probability of"),
    Sort("like", "Like an image", reveals_labels=False, by_worker=True),
    Sort("twins", "Twins side by side", reveals_labels=False, by_worker=True),
    *(build_fact_sort(fact) for fact in FACTS),
    Sort(COLUMN_SORT, "Imported column", imported=True),
)
SORTS_BY_NAME = {one.name: one for one in SORTS}

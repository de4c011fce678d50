"""The Gallery orders, each declared once in the table SORTS.

An entry defines the request value, the page text, and whether the order reveals labels.
"""

from dataclasses import dataclass

from annotator.snapshot.image_facts import FACTS, Fact

COLUMN_SORT = "column"


@dataclass(frozen=True)
class Sort:
    """One order of images in the Gallery, an entry of SORTS."""

    name: str
    label: str
    # hide images to be answered blind. False only if files alone determine it
    reveals_labels: bool = True
    # computed after registration
    by_worker: bool = False
    # changes with imports
    imported: bool = False


def build_fact_sort(fact: Fact) -> Sort:
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

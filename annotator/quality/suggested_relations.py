"""Class relations that the answers support, suggested with the number of supporting images.

It counts answers to cells chosen independently of the answer, in one image per event, because frames are similar.
Without counter-example in n images, at most 1 - 0.05^(1/n) contradict (Clopper & Pearson 1934). A test with Bonferroni
correction over all pairs excludes chance.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.events import membership
from annotator.store.labels import label_cells
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import AT_MOST_ONE, IS_A, Declaration

MIN_IMAGES = 30  # images that speak for a relation
SIGNIFICANCE_LEVEL = 0.01  # chance that any pair of classes is suggested by chance
MAX_SUGGESTIONS = 50  # relations that are suggested, those with most images first
CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True)
class RelationSuggestion:
    """A suggested class relation that no counted answer contradicts."""

    declared: Declaration
    # supporting images. A group of several classes has the minimum over its pairs
    images: int
    # 95% upper limit of the share of images that contradict it
    at_most: float


def suggest_relations(db: Database) -> list[RelationSuggestion]:
    """Return suggested relations that the declared ones do not already imply, most supporting images first."""
    class_ids = np.array([class_.id for class_ in classes.load_active_classes(db)], np.int64)
    is_present, is_answered = _load_answers(db, class_ids)
    together = (is_present.T @ is_present).toarray()  # (C, C): images that show both
    both_known = (is_present.T @ is_answered).toarray()  # that show the first, with an answer to the second
    asked = np.maximum(np.asarray(is_answered.sum(0)).ravel(), 1)
    share = np.asarray(is_present.sum(0)).ravel() / asked
    allowed = np.log(SIGNIFICANCE_LEVEL / max(1, len(class_ids) * (len(class_ids) - 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        always = (both_known - together == 0) & (both_known * np.log(share)[None, :] < allowed)
        never = (together == 0) & (both_known * np.log1p(-share)[None, :] < allowed)
    enough = (both_known >= MIN_IMAGES) & ~np.eye(len(class_ids), dtype=bool)
    always &= enough
    always &= ~always.T  # two names of one thing, where each is a kind of the other
    always &= ~((always.astype(int) @ always.astype(int)) > 0)  # what follows from two others
    never &= enough
    never &= never.T
    known = declared_relations.load_relations(db)
    found = []
    for child, parent in np.argwhere(always).tolist():
        if class_ids[parent] not in known.find_ancestors(int(class_ids[child])):
            pair = (int(class_ids[child]), int(class_ids[parent]))
            found.append(_build_suggestion(Declaration(IS_A, pair), int(both_known[child, parent])))
    excluded = {
        (one.class_id, one.other_id)
        for one in known.build_implications()
        if one.state == PRESENT and one.other_state == ABSENT
    }
    new = never & ~np.array([[(a, b) in excluded for b in class_ids.tolist()] for a in class_ids.tolist()], bool)
    names = classes.load_class_names(db)
    for group in _find_exclusive_groups(never, new):
        ids = tuple(class_ids[group].tolist())
        fewest = int(min(both_known[a, b] for a in group for b in group if a != b))
        name = " / ".join(names[id_] for id_ in ids)[:100]
        found.append(_build_suggestion(Declaration(AT_MOST_ONE, ids, name), fewest))
    return sorted(found, key=lambda one: (-one.images, one.declared.class_ids))[:MAX_SUGGESTIONS]


def _load_answers(db: Database, class_ids: np.ndarray) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Return two sparse (n, C) matrices, of present and of answered classes, with one image per event."""
    found, _, _ = label_cells.load_training_cells(db)
    found = found[(found[:, 3] == 1) & (found[:, 2] != UNSURE)]
    image_ids, image, count = np.unique(found[:, 0], return_inverse=True, return_counts=True)
    events = membership.load_split_groups(db, image_ids)
    order = np.lexsort((image_ids, -count, events))  # of each event the image with most answers
    first = np.r_[True, np.diff(events[order]) != 0] if len(order) else np.zeros(0, bool)
    is_chosen = np.zeros(len(image_ids), bool)
    is_chosen[order[first]] = True
    found, image = found[is_chosen[image]], image[is_chosen[image]]
    columns, shape = np.searchsorted(class_ids, found[:, 1]), (len(image_ids), len(class_ids))
    is_present = found[:, 2] == PRESENT
    ones = np.ones(len(found))
    present = sparse.csr_matrix((ones[is_present], (image[is_present], columns[is_present])), shape)
    return present, sparse.csr_matrix((ones, (image, columns)), shape)


def _find_exclusive_groups(never: np.ndarray, new: np.ndarray) -> list[list[int]]:
    """Return groups of classes that exclude each other (`never`), each with a pair that is undeclared (`new`)."""
    groups, left = [], new.copy()
    for first in np.argsort(-never.sum(1), kind="stable").tolist():
        group = [first]
        for other in np.flatnonzero(never[first]).tolist():
            if all(never[other, member] for member in group):
                group.append(other)
        if len(group) > 1 and left[np.ix_(group, group)].any():
            groups.append(sorted(group))
            left[np.ix_(group, group)] = False
    return groups


def _build_suggestion(declared: Declaration, images: int) -> RelationSuggestion:
    return RelationSuggestion(declared, images, 1 - (1 - CONFIDENCE_LEVEL) ** (1 / images))


def describe_suggestion(one: RelationSuggestion, names: dict[int, str]) -> str:
    """Return a sentence on a suggestion and its supporting images. `names` are class names by id."""
    said = declared_relations.describe_relation(one.declared, names)
    return f"{said}: no counter-example in {one.images:,} images, so in at most {100 * one.at_most:.1f} % (95 %)"

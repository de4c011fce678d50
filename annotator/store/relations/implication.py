"""Implications of one answer through class relations, as pure functions.

Present goes up to parents and absent down to children. A present class makes the rest of its group absent,
and all but one absent make the last of an exactly-one group present.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from annotator.records import ABSENT, PRESENT
from annotator.store.relations.relation_edits import EXACTLY_ONE, IS_A, Declaration, Relation


class Implication(NamedTuple):
    """An answer to one class that implies an answer to another."""

    # class_id, state: the answer
    class_id: int
    state: int
    other_id: int
    other_state: int
    # last relation of the chain
    relation_id: int
    # number of answers that imply it together, above 1 for the last class of an exactly-one group
    needed: int = 1


@dataclass(frozen=True)
class ClassGroup:
    """A group of classes of which at most or exactly one is present in an image."""

    id: int
    name: str
    class_ids: tuple[int, ...]
    exactly_one: bool


@dataclass(frozen=True)
class Relations:
    """The relations of the active classes (`made`: in declaration order)."""

    made: tuple[Relation, ...]
    class_ids: frozenset[int]

    @cached_property
    def parents(self) -> dict[int, dict[int, int]]:
        """Return class id -> direct parent id -> relation id."""
        result: dict[int, dict[int, int]] = {}
        for relation in self.made:
            if relation.declared.kind == IS_A and self.class_ids.issuperset(relation.declared.class_ids):
                child, parent = relation.declared.class_ids
                result.setdefault(child, {}).setdefault(parent, relation.id)
        return result

    @cached_property
    def groups(self) -> tuple[ClassGroup, ...]:
        """Return the groups with at least two active classes. Those with archived classes mean at most one."""
        result: list[ClassGroup] = []
        for relation in self.made:
            declared = relation.declared
            left = tuple(one for one in declared.class_ids if one in self.class_ids)
            if declared.kind != IS_A and len(left) > 1:
                exactly = declared.kind == EXACTLY_ONE and len(left) == len(declared.class_ids)
                result.append(ClassGroup(relation.id, declared.name, left, exactly))
        return tuple(result)

    def find_ancestors(self, class_id: int) -> dict[int, int]:
        """Return a class's ancestors, nearest first: class id -> last relation of the chain."""
        found: dict[int, int] = {}
        waiting = [class_id]
        while waiting:
            for parent, relation_id in self.parents.get(waiting.pop(0), {}).items():
                if parent not in found and parent != class_id:
                    found[parent] = relation_id
                    waiting.append(parent)
        return found

    @cached_property
    def descendants(self) -> dict[int, dict[int, int]]:
        """Return class id -> descendant id -> relation id."""
        result: dict[int, dict[int, int]] = {}
        for child in self.parents:
            for ancestor, relation_id in self.find_ancestors(child).items():
                result.setdefault(ancestor, {})[child] = relation_id
        return result

    def build_implications(self) -> list[Implication]:
        """Return all implications between answers to two classes."""
        found: dict[tuple[int, int, int, int], Implication] = {}

        def add(implication: Implication) -> None:
            found.setdefault(implication[:4], implication)

        excluded: dict[int, dict[int, int]] = {}  # class -> classes that are absent where it is present -> the group
        for group in self.groups:
            for one in group.class_ids:
                for other in group.class_ids:
                    if other != one:
                        for absent in (other, *self.descendants.get(other, {})):
                            excluded.setdefault(one, {}).setdefault(absent, group.id)
        for class_id in sorted(self.class_ids):
            above = self.find_ancestors(class_id)
            for ancestor, relation_id in above.items():
                add(Implication(class_id, PRESENT, ancestor, PRESENT, relation_id))
                add(Implication(ancestor, ABSENT, class_id, ABSENT, relation_id))
            for one in (class_id, *above):
                for other, group_id in excluded.get(one, {}).items():
                    add(Implication(class_id, PRESENT, other, ABSENT, group_id))
        last = [
            Implication(other, ABSENT, one, PRESENT, group.id, len(group.class_ids) - 1)
            for group in self.groups
            if group.exactly_one
            for one in group.class_ids
            for other in group.class_ids
            if other != one
        ]
        return [*found.values(), *last]

    def compute_implied(self, answers: dict[int, int]) -> dict[int, int]:
        """Return implied states of an image's other classes (for tests)."""
        support: dict[tuple[int, int, int], int] = {}
        needed: dict[tuple[int, int, int], int] = {}
        for one in self.build_implications():
            if answers.get(one.class_id) == one.state and one.other_id not in answers:
                key = one.other_id, one.other_state, one.relation_id
                support[key] = support.get(key, 0) + 1
                needed[key] = one.needed
        states: dict[int, set[int]] = {}
        for key, count in support.items():
            if count >= needed[key]:
                states.setdefault(key[0], set()).add(key[1])
        return {class_id: of.pop() for class_id, of in states.items() if len(of) == 1}


def find_problems(relations: Relations, added: Sequence[Declaration], names: dict[int, str]) -> list[str]:
    """Return problems of added relations: cycles and impossible classes."""
    found: list[str] = []
    for one in added:
        if one.kind == IS_A:
            child, parent = one.class_ids
            if child == parent:
                found.append(f"{names[child]!r} cannot be a kind of {names[child]!r}.")
            elif path := _find_path(relations, parent, child):
                words = " is a kind of ".join(repr(names[class_id]) for class_id in [child, *path])
                found.append(f"{words}: that is a circle.")
        elif len(set(one.class_ids)) < 2:
            found.append(f"The group {one.name!r} needs at least two different classes.")
    if found:
        return found
    states: dict[tuple[int, int], set[int]] = {}
    for one in relations.build_implications():
        if one.state == PRESENT and one.needed == 1:
            states.setdefault((one.class_id, one.other_id), set()).add(one.other_state)
            if one.other_id == one.class_id:
                states[one.class_id, one.other_id].update((PRESENT, ABSENT))
    for (class_id, other_id), both in states.items():
        if len(both) > 1:
            found.append(
                f"{names[class_id]!r} could never be present: "
                f"it would mean that {names[other_id]!r} is present and absent."
            )
    return found


def _find_path(relations: Relations, start: int, end: int) -> list[int]:
    ways: list[list[int]] = [[start]]
    seen = {start}
    while ways:
        way = ways.pop(0)
        if way[-1] == end:
            return way
        for parent in relations.parents.get(way[-1], {}):
            if parent not in seen:
                seen.add(parent)
                ways.append([*way, parent])
    return []

"""Labels follow from their decisions, whatever three people answer, undo, import, archive, merge and declare.

A seed gives two walks of 250 to 500 operations: hypothesis limits how much a walk may draw. After each operation,
the store equals the reference and `doctor` finds nothing. A failure prints its seed and the operations of the walk:
`WALK_SEEDS=7,8 pytest tests/store/test_label_walks.py` repeats or adds walks.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from harness.reference_labels import compute_reference
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from annotator.errors import AnnotatorError
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.project_setup import set_up_project
from annotator.records import ABSENT, PRESENT, Batch, Decision
from annotator.store.classes import class_changes, class_history, classes
from annotator.store.database import authorization
from annotator.store.database.database import Database
from annotator.store.imports import past_imports
from annotator.store.labels import auto_accepted, decisions, image_overlap
from annotator.store.labels.auto_accepted import NewAcceptance
from annotator.store.people import members
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import AT_MOST_ONE, EXACTLY_ONE, IS_A, Declaration
from annotator.store.upkeep import consistency

MAX_STEPS_PER_WALK, WALKS_PER_SEED = 500, 2
WALK_SEEDS = [int(seed) for seed in os.environ.get("WALK_SEEDS", "7").split(",")]
MORE_SEEDS = range(100, 106)
ROLES = {"Ann": "owner", "Ben": "reviewer", "Cem": "annotator"}
IMAGES = range(1, 7)
MAX_CLASSES = 9
KEYS = ("1", "2", "3", "q", "w")
SOURCE_NAMES = ("click", "click", "suggestion", "reading", "audit", "known", "settlement", "random")

people = st.sampled_from(list(ROLES))
images = st.sampled_from(IMAGES)
states = st.sampled_from((1, 1, -1, 0, None))
picks = st.integers(0, 11)


class LabelWalk(RuleBasedStateMachine):
    """Three people, six images, and at first four classes."""

    folder: Path  # of a prepared project; every walk works on a copy

    def __init__(self):
        super().__init__()
        self.temporary = tempfile.TemporaryDirectory()
        self.path = Path(self.temporary.name) / "project"
        shutil.copytree(self.folder, self.path)
        self.db = Database(self.path)
        self.member_ids = {name: members.find_member(self.db, name).id for name in ROLES}
        self.first_classes = self._read_classes()
        self.uuids: list[str] = []
        self.sent = 0
        self.is_sound = False
        self.accepted: dict[int, set[tuple[int, int]]] = {}

    @initialize(share=st.sampled_from((0.0, 0.6)), number=st.integers(0, 255))
    def wait_for_several(self, share: float, number: int) -> None:
        hypothesis.assume(number)  # hypothesis begins with the simplest walk, which repeats one operation
        image_overlap.set_overlap(self.db, 2, share)

    # People answer

    @rule(person=people, image=images, class_=picks, state=states, source=st.sampled_from(SOURCE_NAMES))
    def answer(self, person: str, image: int, class_: int, state: int | None, source: str) -> None:
        action = "clear" if state is None else "label"
        self._save(person, action, source, image_id=image, class_id=self._pick_class(class_), state=state)

    @rule(person=people, class_=picks, state=st.sampled_from((1, -1, None)), count=st.integers(2, 4), first=images)
    def answer_grid(self, person: str, class_: int, state: int | None, count: int, first: int) -> None:
        class_id = self._pick_class(class_)
        cells = [((first + number) % len(IMAGES) + 1, class_id, state, None) for number in range(count)]
        self._send(person, Batch(self._name(), person, "grid", cells))

    @rule(person=people, image=images)
    def finish_image(self, person: str, image: int) -> None:
        self._save(person, "done", "done", image_id=image)

    @rule(person=people, image=images)
    def skip(self, person: str, image: int) -> None:
        self._save(person, "skip", "click", image_id=image)

    @rule(person=people, image=images, note=st.sampled_from(("blurred", "")))
    def exclude(self, person: str, image: int, note: str) -> None:
        self._save(person, "flag", "aside", image_id=image, note=note)

    @rule(person=people)
    def undo_own(self, person: str) -> None:
        self._save(person, "undo", "click")

    @rule(person=people, which=picks)
    def undo_one(self, person: str, which: int) -> None:
        if self.uuids:
            self._save(person, "undo", "click", undoes=self.uuids[which % len(self.uuids)])

    # Classes change

    @rule(class_=picks)
    def archive(self, class_: int) -> None:
        self._attempt(lambda: class_changes.archive(self.db, "Ann", [self._pick_class(class_)]))

    @rule(class_=picks)
    def restore(self, class_: int) -> None:
        self._attempt(lambda: class_changes.restore(self.db, "Ann", [self._pick_class(class_)]))

    @rule(class_=picks, into=picks, same=st.booleans())
    def merge(self, class_: int, into: int, same: bool) -> None:
        self._attempt(
            lambda: class_changes.merge(self.db, "Ann", [self._pick_class(class_)], self._pick_class(into), same=same)
        )

    @rule(class_=picks, key=st.sampled_from(KEYS))
    def change_key(self, class_: int, key: str) -> None:
        self._attempt(lambda: class_changes.edit(self.db, "Ann", {self._pick_class(class_): {"key": key}}))

    @rule()
    def add_class(self) -> None:
        if (count := self.db.value("SELECT count(*) FROM class")) < MAX_CLASSES:
            classes.add_classes(self.db, [(f"class {count + 1}", "")], "Ann")

    @rule(class_=picks)
    def split(self, class_: int) -> None:
        if (count := self.db.value("SELECT count(*) FROM class")) < MAX_CLASSES:
            self._attempt(
                lambda: class_changes.split_class(self.db, "Ann", self._pick_class(class_), f"class {count + 1}")
            )

    @rule()
    def undo_class_change(self) -> None:
        self._attempt(lambda: class_history.undo_change(self.db, "Ann"))

    @rule(which=picks)
    def undo_any_class_change(self, which: int) -> None:
        changes = class_history.load_changes(self.db)
        self._attempt(lambda: class_history.undo_change(self.db, "Ann", changes[which % len(changes)].id))

    # Relations

    @rule(kind=st.sampled_from((IS_A, AT_MOST_ONE, EXACTLY_ONE)), first=picks, second=picks, third=picks)
    def declare(self, kind: str, first: int, second: int, third: int) -> None:
        members_ = [self._pick_class(one) for one in (first, second, third)]
        ids = tuple(members_[:2]) if kind == IS_A else tuple(dict.fromkeys(members_))
        self._attempt(lambda: declared_relations.declare(self.db, [Declaration(kind, ids, "")], "Ann"))

    @rule()
    def undo_relation(self) -> None:
        self._attempt(lambda: declared_relations.undo(self.db, "Ann"))

    @rule(which=picks)
    def remove_relation(self, which: int) -> None:
        if made := declared_relations.load_relations(self.db).made:
            declared_relations.remove(self.db, made[which % len(made)].id, "Ann")

    # Imports

    @rule(
        rows=st.lists(st.tuples(images, picks, st.sampled_from((1, 1, -1))), min_size=1, max_size=6),
        exhaustive=st.booleans(),
        conflicts=st.sampled_from(("keep", "replace")),
    )
    def import_labels(self, rows: list[tuple[int, int, int]], exhaustive: bool, conflicts: str) -> None:
        image_names = dict(self.db.tuples("SELECT id, name FROM image"))
        class_names = classes.load_class_names(self.db)
        cells = {(image, self._pick_class(class_)): state for image, class_, state in rows}
        words = {PRESENT: "present", ABSENT: "absent"}
        lines = [f"{image_names[image]},{class_names[one]},{words[state]}" for (image, one), state in cells.items()]
        source = Path(self.temporary.name) / f"labels-{self._name()}.csv"
        source.write_text("image,class,state\n" + "\n".join(lines) + "\n")
        options = ImportOptions(conflicts=conflicts, exhaustive=exhaustive)

        def apply() -> None:
            with prepare_import(self.db, source, options, "Ann") as plan:
                plan.apply()

        self._attempt(apply)

    @rule(which=picks)
    def undo_import(self, which: int) -> None:
        if made := past_imports.load_imports(self.db):
            self._attempt(lambda: past_imports.undo(self.db, made[which % len(made)].id, "Ann"))

    # Cells that nobody answers one by one

    @rule(class_=picks)
    def rule_out(self, class_: int) -> None:
        self._accept(self._pick_class(class_), ABSENT, list(IMAGES), "Ann")

    @rule(class_=picks, state=st.sampled_from((PRESENT, ABSENT)), some=st.sets(images, min_size=1))
    def accept_by_model(self, class_: int, state: int, some: set[int]) -> None:
        self._accept(self._pick_class(class_), state, sorted(some), "")

    @rule(which=picks)
    def withdraw(self, which: int) -> None:
        if held := [one for one in auto_accepted.load_acceptances(self.db) if not one.withdrawn]:
            auto_accepted.withdraw_batch(self.db, held[which % len(held)].batch, "undone")

    @invariant()
    def labels_equal_the_reference(self) -> None:
        self.is_sound = False
        wanted, db = compute_reference(self.db), self.db
        labels = db.tuples("SELECT image_id, class_id, state, decision_id FROM label")
        assert {row[:2]: row[2:] for row in labels} == wanted.labels
        assert set(db.tuples("SELECT image_id, class_id FROM contradiction")) == wanted.disagreements
        implied = db.tuples("SELECT image_id, class_id, state FROM accepted WHERE decision_id NOT NULL")
        assert {row[:2]: row[2] for row in implied} == wanted.implied
        assert dict(db.tuples("SELECT id, stage FROM image")) == wanted.stages
        holding = [one for one in auto_accepted.load_acceptances(db) if not one.withdrawn]
        cells = {(image, one.class_id, one.state) for one in holding for image in self.accepted.get(one.id, ())}
        closed = wanted.labels.keys() | wanted.implied.keys()
        stored = set(db.tuples("SELECT image_id, class_id, state FROM accepted WHERE decision_id IS NULL"))
        assert stored == {cell for cell in cells if cell[:2] not in closed}
        self.is_sound = True

    @invariant()
    def doctor_finds_nothing(self) -> None:
        assert consistency.find_problems(self.db) == []

    def teardown(self) -> None:
        try:
            if self.is_sound:
                self._undo_all_class_changes()
        finally:
            self.db.close()
            self.temporary.cleanup()

    def _undo_all_class_changes(self) -> None:
        changes = class_history.load_changes(self.db)
        for _ in range(sum(change.can_be_undone for change in changes)):
            class_history.undo_change(self.db, "Ann")
            self.labels_equal_the_reference()
        undone = self._read_classes()
        assert {class_id: undone[class_id] for class_id in self.first_classes} == self.first_classes

    def _read_classes(self) -> dict[int, tuple[object, ...]]:
        return {row[0]: row for row in self.db.tuples("SELECT id, name, key, archived, position FROM class")}

    def _pick_class(self, number: int) -> int:
        count = self.db.value("SELECT count(*) FROM class")
        return number % count + 1

    def _name(self) -> str:
        self.sent += 1
        return str(uuid.UUID(int=self.sent))

    def _save(self, person: str, action: str, source: str, **values: object) -> None:
        self._send(person, Decision(self._name(), action, person, source, **values))  # type: ignore[arg-type]

    def _send(self, person: str, decision: Decision | Batch) -> None:
        authorization.set_member_source(lambda: self.member_ids[person])
        try:
            if decisions.save(self.db, [decision]).saved:
                self.uuids.append(decision.uuid)
        finally:
            authorization.set_member_source(lambda: None)

    def _attempt(self, change: Callable[[], object]) -> None:
        with suppress(AnnotatorError):  # refused with its reason, and the invariants hold all the same
            change()

    def _accept(self, class_id: int, state: int, image_ids: list[int], by: str) -> None:
        scores = np.full(len(image_ids), 0.5)
        new = NewAcceptance(class_id, state, 0, 0.5, 0.9, 0.9, 10, 0, np.array(image_ids), scores, by)
        auto_accepted.accept(self.db, self._name(), new)
        rows = self.db.tuples("SELECT acceptance_id, image_id FROM accepted WHERE decision_id IS NULL")
        known = set(self.accepted)
        for acceptance, image in rows:
            if acceptance not in known:
                self.accepted.setdefault(acceptance, set()).add(image)


@pytest.fixture
def walk(tmp_path: Path, drawn_photos: Path) -> type[LabelWalk]:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in IMAGES:
        shutil.copy(drawn_photos / f"{number:02}.jpg", photos)
    set_up_project(tmp_path / "project", images_folder=photos, class_text="fox\nheron\ndeer\nhare")
    with closing(Database(tmp_path / "project")) as db:
        for name, role in ROLES.items():
            members.add(db, name, role, "test")
    LabelWalk.folder = tmp_path / "project"
    return LabelWalk


@pytest.mark.parametrize("seed", [*WALK_SEEDS, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MORE_SEEDS)])
def test_labels_equal_the_reference_after_each_operation_of_a_random_walk(walk: type[LabelWalk], seed: int):
    print(f"WALK_SEEDS={seed}")
    settings = hypothesis.settings(
        max_examples=WALKS_PER_SEED,
        stateful_step_count=MAX_STEPS_PER_WALK,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=(hypothesis.Phase.generate,),
    )
    run_state_machine_as_test(hypothesis.seed(seed)(walk), settings=settings)

"""Relations that answers suggest: those that were made, with the images that speak for them, and no others."""

import uuid
from pathlib import Path

import numpy as np
import pytest
from conftest import draw
from harness.in_events import in_events

from annotator.exchange.project_setup import set_up_project
from annotator.quality import suggested_relations
from annotator.records import ABSENT, PRESENT, Batch
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import AT_MOST_ONE, IS_A

NAMES = ("animal", "dog", "spaniel", "day", "night", "blue")
IMAGES = 240


def shown() -> np.ndarray:
    """(IMAGES, 6): a spaniel is a dog is an animal, it is day or night, and blue is by chance."""
    rng = np.random.default_rng(3)
    animal, dog, spaniel = rng.random((3, IMAGES)) < np.array([[0.6], [0.6], [0.6]])
    day = rng.random(IMAGES) < 0.5
    dog &= animal
    spaniel &= dog
    return np.stack([animal, dog, spaniel, day, ~day, rng.random(IMAGES) < 0.5], 1)


@pytest.fixture(scope="module")
def many_photos(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    for number in range(IMAGES):
        draw(folder / f"{number:03}.jpg", seed=number, size=(24, 18))
    return folder


@pytest.fixture
def told(tmp_path, many_photos) -> Database:
    """All images, answered in every class as they are."""
    set_up_project(tmp_path / "pets", images_folder=many_photos, class_text="\n".join(NAMES))
    db = Database(tmp_path / "pets")
    answer(db, shown())
    return db


def answer(db: Database, truth: np.ndarray, source: str = "random") -> None:
    ids = [classes.load_classes_by_name(db)[name].id for name in NAMES]
    for image, row in enumerate(truth, start=1):
        cells = [(image, id_, PRESENT if is_ else ABSENT, None) for id_, is_ in zip(ids, row, strict=True)]
        assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Ann", source, cells)]).refused


def found(db: Database) -> set[tuple[str, ...]]:
    names = classes.load_class_names(db)
    declared = [one.declared for one in suggested_relations.suggest_relations(db)]
    return {(one.kind, *(names[id_] for id_ in one.class_ids)) for one in declared}


def test_class_relations_without_counterexamples_are_suggested_until_declared(told):
    truth = shown()
    wanted = {(IS_A, "spaniel", "dog"), (IS_A, "dog", "animal"), (AT_MOST_ONE, "day", "night")}
    assert found(told) == wanted
    [spaniel] = [one for one in suggested_relations.suggest_relations(told) if one.declared.class_ids == (3, 2)]
    assert spaniel.images == truth[:, 2].sum() and spaniel.at_most == pytest.approx(1 - 0.05 ** (1 / spaniel.images))
    declared_relations.declare(told, [one.declared for one in suggested_relations.suggest_relations(told)], "Ann")
    assert found(told) == set()


def test_class_relation_is_not_suggested_after_one_counterexample_or_with_too_few_events(told):
    [spaniel] = [int(row) + 1 for row in np.flatnonzero(shown()[:, 2])[:1]]
    dog = classes.load_classes_by_name(told)["dog"].id
    decisions.save(told, [Batch(str(uuid.uuid4()), "Ann", "random", [(spaniel, dog, ABSENT, None)])])
    assert (IS_A, "spaniel", "dog") not in found(told)
    in_events(told, 12)  # 20 events: too few
    assert found(told) == set()


def test_answers_to_single_classes_suggest_no_class_relations(tmp_path, many_photos):
    set_up_project(tmp_path / "pets", images_folder=many_photos, class_text="\n".join([*NAMES, "red"]))
    db = Database(tmp_path / "pets")
    answer(db, shown(), "click")
    assert found(db) == set()

"""Selections on the map: each person has an allowance of their own, and two may be made at once."""

import threading

import numpy as np

from annotator.store.images import selections


def test_saved_image_selections_of_one_annotator_never_evict_those_of_others(db):
    mine = selections.save(db, np.array([1, 2]), "Ann")
    for number in range(2 * selections.SELECTIONS_PER_PERSON):
        selections.save(db, np.array([number]), "a guest")
    assert selections.load(db, mine).tolist() == [1, 2]
    assert len(list(db.paths.selections.glob("*.npy"))) == selections.SELECTIONS_PER_PERSON + 1


def test_saving_image_selections_of_one_annotator_concurrently_raises_no_error(db):
    problems: list[BaseException] = []
    begin = threading.Barrier(8)

    def make(name: str) -> None:
        begin.wait()
        try:
            for number in range(60):
                selections.save(db, np.array([number]), name)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=make, args=("one guest",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []

"""Somebody with an empty machine and 12 photos comes to an exported data set; every pair is as they meant."""

import pytest
from conftest import CLASSES, draw
from harness import front_door

pytestmark = [pytest.mark.process, pytest.mark.slow]

MOST_PRESSES = 8


@pytest.mark.parametrize("mouse", [True, False], ids=["by mouse", "by keyboard until the first label"])
def test_image_folder_becomes_an_exported_dataset_with_the_intended_labels(browser, tmp_path, mouse):
    labels = {}
    for number in range(12):
        shown = tuple(name for bit, name in enumerate(CLASSES) if (number + 1) >> bit & 1)
        labels[draw(tmp_path / front_door.PHOTOS / f"{number:02}.jpg", shown, seed=number).name] = set(shown)
    first = front_door.play(browser, tmp_path, labels, list(CLASSES), print, mouse=mouse)
    assert first.presses <= MOST_PRESSES

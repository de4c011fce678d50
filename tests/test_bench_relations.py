"""annotator bench relations: relations save actions, and what is published obeys them."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from annotator.benchmark.relation_savings import KINDS_PER_GROUP, measure


@pytest.mark.slow
def test_relations_save_actions_and_probabilities_obey_them(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    names = [f"kind {letter}" for letter in "abcd"]
    with (tmp_path / "truth.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "labels"])
        for number in range(40):
            shown = [place for place in range(4) if rng.random() < 0.4]
            pixels = rng.integers(0, 60 + 120 * (number % 2), (48, 64, 3), dtype=np.uint8)
            for place in shown:
                pixels[:, 16 * place : 16 * place + 16, place % 3] = 255
            Image.fromarray(pixels).save(tmp_path / "photos" / f"{number:02}.png")
            rows.writerow([f"{number:02}.png", "|".join(names[place] for place in shown)])
    result = measure(tmp_path / "photos", tmp_path / "truth.csv")
    figures, ratios = result["figures"], result["ratios"]
    groups = -(-len(names) // KINDS_PER_GROUP)
    assert figures["classes"] == len(names) + groups + 1 + 3 + 2 and figures["relations"] == len(names) + groups + 2
    assert figures["cells_that_break_a_relation"] == 0
    assert ratios["form_actions_without_over_with"] > 1.3 and ratios["autopilot_actions_without_over_with"] > 1.05
    assert json.dumps(result)

"""The parts of the Gallery's columns that small projects do not reach: many people, many names, long names."""

import random

import numpy as np
import pytest

from annotator.store.gallery import image_names
from annotator.store.gallery.image_columns import Membership
from annotator.store.gallery.image_names import TextBlock


@pytest.mark.parametrize("block", [1, 50, 1 << 17])
@pytest.mark.parametrize("letters", ["ab", "abcdefghij0123456789\u00e9"])
def test_file_name_index_search_equals_python_string_search(letters, block, monkeypatch):
    monkeypatch.setattr(image_names, "SEARCH_BLOCK_BYTES", block)
    chance = random.Random(0)
    plain = ["".join(chance.choices(letters, k=chance.randint(0, 12))) for _ in range(300)]
    texts = TextBlock.build(plain[:200]).extend([TextBlock.build(plain[200:])])
    plain[7] = plain[299] = "another one"
    texts = texts.replace_rows({7: plain[7], 299: plain[299]})
    parts = ["", "another", "\0", "a\0b", "b" * 40]
    parts += ["".join(chance.choices(letters, k=size)) for size in range(1, 10) for _ in range(8)]
    parts += [text[chance.randint(0, 3) :][: chance.randint(1, 12)] for text in plain[::9]]
    for part in parts:
        assert texts.find_containing(part).tolist() == [part in text for text in plain], part
        assert texts.find_beginning_with(part).tolist() == [row for row in range(300) if plain[row].startswith(part)], (
            part
        )
        assert texts.find_ending_with(part).tolist() == [row for row in range(300) if plain[row].endswith(part)], part


def test_text_search_ignores_case_and_unicode_normalization():
    texts = TextBlock.build(["\u00c9T\u00c9.jpg", "e\u0301te\u0301", "stra\u00dfe", "a\0b", ""])
    assert np.flatnonzero(texts.find_containing("\u00e9t")).tolist() == [0, 1]
    assert np.flatnonzero(texts.find_containing("STRASSE")).tolist() == [2] and len(texts) == 5


def test_gallery_annotator_index_distinguishes_more_than_64_annotators():
    membership, chance = Membership(), np.random.default_rng(0)
    rows, numbers = chance.integers(0, 40, 600), chance.integers(0, 150, 600)
    for start in (0, 300):
        membership.add(rows[start : start + 300], [f"person {n}" for n in numbers[start : start + 300]], 40)
    membership.clear(np.array([3, 4]))
    membership.grow(41)
    for number in range(151):
        expected = sorted(set(rows[numbers == number].tolist()) - {3, 4})
        assert np.flatnonzero(membership.get_mask(f"person {number}", 41)).tolist() == expected

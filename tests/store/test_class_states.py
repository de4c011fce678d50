"""Two bits an image say the same as a byte an image, however they are changed."""

import numpy as np
import pytest

from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.gallery.class_states import OPEN, ClassStates, locate_bits


@pytest.mark.parametrize("count", [0, 1, 8, 1003])
def test_packed_class_states_match_a_plain_array_after_random_changes(count):
    chance = np.random.default_rng(count)
    plain, packed = np.full(count, OPEN, np.int8), ClassStates(count)
    rows = chance.permutation(count)
    for state, some in zip((PRESENT, ABSENT, UNSURE), np.array_split(rows[: 3 * count // 4], 3), strict=True):
        plain[some] = state
        packed.set_state(some, state)
    for round_ in range(5):
        changed = chance.permutation(len(plain))[: min(len(plain), 20)]
        plain[changed] = OPEN
        packed.clear(locate_bits(changed))
        answered, states = changed[::2], chance.choice([PRESENT, ABSENT, UNSURE], len(changed[::2]))
        plain[answered] = states
        packed.set_states(answered, states)
        if round_ == 2:
            plain = np.concatenate([plain, np.full(5, OPEN, np.int8)])
            packed.grow(len(plain))
        for state in (PRESENT, ABSENT, UNSURE, OPEN):
            assert np.array_equal(packed.get_mask(state), plain == state), (round_, state)

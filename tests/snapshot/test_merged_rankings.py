"""Rankings merged from blocks are those of a full sort, however the rows are cut and whoever ranks them."""

from itertools import pairwise

import numpy as np
from harness.made_rankings import answers, made_up
from hypothesis import given, settings
from hypothesis import strategies as st

from annotator.snapshot import merged_ranking, rankings
from annotator.store.labels import decisions

CHANCES = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 1.0, np.nan]), st.floats(0, 1, width=16))


@st.composite
def cut_cells(draw) -> tuple[np.ndarray, list[int], int]:
    """Probabilities (n,) float16, where they are cut into blocks (with 0 and n), and how many are kept."""
    chances = np.array(draw(st.lists(CHANCES, max_size=80)), np.float16)
    cuts = draw(st.lists(st.integers(0, len(chances)), max_size=6))
    return chances, sorted([0, *cuts, len(chances)]), draw(st.integers(1, 90))


def fully_sorted(chances: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and scores that are kept, by one sort of everything."""
    order = np.lexsort((np.arange(len(chances)), -chances.astype(float)))
    order = order[~np.isnan(chances[order])]
    if len(order) > depth:
        first = depth - depth // 5
        order = np.concatenate(
            [order[:first], order[np.linspace(first, len(order) - 1, depth - first).astype(np.int64)]]
        )
    rows, scores = np.full(depth, -1), np.zeros(depth, np.float16)
    rows[: len(order)], scores[: len(order)] = order, chances[order]
    return rows, scores


@settings(max_examples=300, deadline=None)
@given(cut_cells())
def test_ranking_merged_from_consecutive_blocks_equals_a_full_sort(cells):
    chances, cuts, depth = cells
    keys = merged_ranking.to_keys(chances.copy())
    blocks = [keys[start:end] for start, end in pairwise(cuts)]
    ranking = merged_ranking.MergedRanking(
        sum(map(merged_ranking.count_keys, blocks), np.zeros(merged_ranking.KEY_COUNT, np.int64)), depth
    )
    for first, block in zip(cuts, blocks, strict=False):
        ranking.add_block(block, first)
    rows, scores = fully_sorted(chances, depth)
    assert ranking.rows.tolist() == rows.tolist() and ranking.scores.tolist() == scores.tolist()
    assert np.isclose(ranking.expected, np.nansum(chances.astype(float)))


@settings(max_examples=100, deadline=None)
@given(cut_cells(), st.randoms())
def test_ranking_merged_from_block_heads_in_any_order_equals_a_full_sort(cells, chance):
    chances, cuts, depth = cells
    keys = merged_ranking.to_keys(chances.copy())
    blocks = [(first, keys[first:end]) for first, end in pairwise(cuts)]
    counts = [merged_ranking.count_keys(block) for _, block in blocks]  # what each machine says first
    total = sum(counts, np.zeros(merged_ranking.KEY_COUNT, np.int64))
    seen = [sum(counts[:place], np.zeros(merged_ranking.KEY_COUNT, np.int64)) for place in range(len(blocks))]
    ranking, numbers = merged_ranking.MergedRanking(total, depth), list(range(len(blocks)))
    chance.shuffle(numbers)
    for number in numbers:
        first, block = blocks[number]
        places, rows = merged_ranking.MergedRanking(total, depth).find_head(block, seen[number])
        ranking.rows[places] = first + rows
    assert ranking.rows.tolist() == fully_sorted(chances, depth)[0].tolist()


def test_rankings_do_not_depend_on_the_block_size(db, monkeypatch):
    answers(db)
    newest, ids, class_ids = decisions.get_newest_decision_id(db), np.arange(1, 25), np.arange(1, 4)
    whole = rankings.build(db, newest, ids, class_ids, made_up())
    for cells in (1, 7, 30):
        monkeypatch.setattr(rankings, "CELLS_PER_BLOCK", cells)
        in_blocks = rankings.build(db, newest, ids, class_ids, made_up())
        for name in vars(whole):
            assert np.array_equal(getattr(in_blocks, name), getattr(whole, name)), (name, cells)

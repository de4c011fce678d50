"""Arrays that are written by rows, and those that are files without a name."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from annotator.store.database import arrays


def test_array_saved_in_row_chunks_equals_the_array_saved_in_one_step(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "CHUNK_ROWS", 7)
    array = np.random.default_rng(0).random((50, 3)).astype(np.float16)
    arrays.save_array(tmp_path / "at-once.npy", array)
    arrays.save_rows(tmp_path / "by-rows.npy", array.astype(np.float32), np.float16)
    assert np.array_equal(np.load(tmp_path / "by-rows.npy"), array)
    assert (tmp_path / "by-rows.npy").read_bytes() == (tmp_path / "at-once.npy").read_bytes()
    arrays.save_rows(tmp_path / "empty.npy", array[:0], np.float16)
    assert np.load(tmp_path / "empty.npy").shape == (0, 3)


@pytest.mark.parametrize("has_room", [True, False])
def test_scratch_array_is_writable_with_or_without_disk_space_and_leaves_no_file(tmp_path, monkeypatch, has_room):
    monkeypatch.setattr(arrays, "MIN_SCRATCH_FILE_BYTES", 100)
    if not has_room:

        def refuse(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    array = arrays.create_scratch_array(tmp_path / "new", (100, 3), np.float32)
    assert array.shape == (100, 3) and not array.any()
    array[50:] = 7
    assert array.sum() == 50 * 3 * 7 and not list(tmp_path.rglob("*.npy")) and not list(tmp_path.glob("new/*"))


def test_array_keeps_its_values_after_its_memory_pages_are_released(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "MIN_SCRATCH_FILE_BYTES", 100)
    scratch = arrays.create_scratch_array(tmp_path, (5000, 3), np.float32)
    scratch[:] = np.arange(15_000).reshape(5000, 3)
    arrays.save_array(tmp_path / "mapped.npy", scratch)
    for array in (scratch, np.asarray(arrays.open_array(tmp_path / "mapped.npy")), scratch.copy(), None):
        before = None if array is None else array.copy()
        arrays.release_pages(array)
        assert array is None or np.array_equal(array, before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory by kind is what Linux tells")
def test_releasing_memory_pages_of_a_mapped_array_lowers_the_resident_memory(tmp_path):
    def mapped_mb() -> float:
        return int(Path("/proc/self/status").read_text().partition("RssFile:")[2].split()[0]) / 1000

    arrays.save_array(tmp_path / "large.npy", np.zeros(40_000_000, np.int8))
    array = np.asarray(arrays.open_array(tmp_path / "large.npy"))
    before = mapped_mb()
    array.sum()
    assert mapped_mb() > before + 30
    arrays.release_pages(array)
    assert mapped_mb() < before + 10

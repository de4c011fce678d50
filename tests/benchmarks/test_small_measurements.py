"""Small runs of the measurements: that they end, say what they promise, and count honestly. Never how fast it was."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import browser, child_processes, projects
from harness.served import until
from PIL import Image

from annotator.benchmark.boxes import read_boxes
from annotator.benchmark.scratch import scratch_folder
from annotator.errors import AnnotatorError
from benchmarks import freshness, heatmaps, interface
from benchmarks.interface import annotate_rows, bursts, gallery_rows, presses


@pytest.fixture
def folder(tmp_path):
    """Twelve small images of two colours; the truth names both colours and a frame that half of them have."""
    images = tmp_path / "images"
    images.mkdir()
    rows = ["image,labels"]
    chance = np.random.default_rng(0)
    for number in range(12):
        pixels = np.zeros((64, 64, 3), np.uint8)
        pixels[:, :, number % 2] = 200
        pixels += chance.integers(0, 40, pixels.shape, dtype=np.uint8)
        if number % 4 < 2:
            pixels[:8] = 255
        Image.fromarray(pixels).save(images / f"{number:02d}.png")
        rows.append(f"{number:02d}.png,{'green' if number % 2 else 'red'}{'|frame' if number % 4 < 2 else ''}")
    truth = tmp_path / "truth.csv"
    truth.write_text("\n".join(rows) + "\n")
    return images, truth


def numbers(result, name):
    assert set(result) == {"bench", "figures", "ratios"} and result["bench"] == name
    values = result["figures"] | result["ratios"]
    assert all(isinstance(value, int | float) and np.isfinite(value) for value in values.values())
    return values


@pytest.mark.slow
@pytest.mark.process
def test_interface_benchmark_times_the_first_page_from_the_server_start(monkeypatch):
    monkeypatch.setattr("benchmarks.interface.grid_review_rows.SERVER_STARTS", 1)
    values = numbers(interface.measure(keys=10, rows=["first-page"]), "interface")
    assert 0 < values["floor_first_page_p50_seconds"] < values["annotate_first_page_p50_seconds"]


@pytest.mark.slow
def test_heat_map_counts_as_a_hit_when_its_peak_is_in_a_box(folder, tmp_path):
    images, truth = folder
    boxes = tmp_path / "boxes.csv"
    rows = ["image,class,left,top,right,bottom"]
    for name, kinds in (row.split(",") for row in truth.read_text().splitlines()[1:]):
        edges = "0,0,64,64" if int(name[:2]) % 4 < 2 else "0,0,1,1"  # all of it, always hit; or its corner, never
        rows += [f"{name},{kind},{edges}" for kind in kinds.split("|")]
    boxes.write_text("\n".join(rows) + "\n")
    values = numbers(heatmaps.measure(images, truth, boxes, labels=[9], backbone="efficientnet_lite0"), "heatmaps")
    # 18 labels, 9 of them clicked.
    assert values["labels_9_maps"] == 9 == sum(values[f"positives_{low}_maps"] for low in heatmaps.POSITIVE_BINS)
    assert values["hit_share"] == values["centre_share"] == pytest.approx(values["labels_9_hits"] / 9, abs=1e-4)
    share = values["centre_share"]
    assert 0 < share < 1 and values["random_share"] == pytest.approx(share + (1 - share) / 64**2, abs=1e-3)


def test_error_of_an_object_box_csv_lists_all_invalid_lines_together(tmp_path):
    path = tmp_path / "boxes.csv"
    path.write_text(
        "image,class,left,top,right,bottom\na.jpg,fox,5,0,4,9\nb.jpg,fox,0,0,1,1\na.jpg,fox,x,0,1,1\na.jpg,fox,0,0,1,inf\n"
    )
    with pytest.raises(AnnotatorError) as told:
        read_boxes(path, ["a.jpg"], ["fox"])
    assert all(words in str(told.value) for words in ("line 2", "line 3", "'b.jpg'", "line 4", "line 5"))
    path.write_text("image,class\n")
    with pytest.raises(AnnotatorError, match="no column left, top, right, bottom"):
        read_boxes(path, ["a.jpg"], ["fox"])


def test_simulated_clicks_are_true_labels_one_per_image():
    there = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1]], bool)
    for seed in range(20):
        labels = heatmaps.draw_clicks(there, 2, np.random.default_rng(seed))
        assert labels.sum() == 2 and labels.sum(1).max() == 1
        assert there[labels == 1].all()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("files", [freshness.MAX_IMAGE_FILES, 0])
def test_freshness_benchmark_times_decision_to_updated_probabilities_and_training(files, monkeypatch):
    monkeypatch.setattr(freshness, "MAX_IMAGE_FILES", files)
    values = numbers(freshness.measure(240, 3, answers=3, repetitions=1), "freshness")
    assert (values["images"], values["classes"], values["answers"]) == (240, 3, 3)
    for kind in freshness.DECISION_KINDS:
        fast, slow = (values[f"{kind}_to_published_{name}_seconds"] for name in ("p50", "max"))
        assert 0 < values["bare_matrix_product_seconds"] < fast <= slow and values[f"{kind}_to_published_count"] == 3
    assert values["refills_until_gone_max"] == 1
    assert 0 < values["training_and_writing_p50_seconds"] < values["decision_to_training_p50_seconds"]


def in_order(values, *names):
    """p50 and p95 of these rows are there, and not the wrong way round."""
    for name in names:
        assert 0 < values[f"{name}_p50_ms"] <= values[f"{name}_p95_ms"], name


@pytest.mark.slow
@pytest.mark.browser
def test_interface_benchmark_compares_annotate_page_times_with_a_minimal_page():
    values = numbers(interface.measure(keys=3, rows=["key", "burst"]), "interface")
    in_order(values, "floor_key", "floor_picture_first_key", "annotate_key", "floor_click", "annotate_click")
    assert values["annotate_key_p95_over_floor"] > 0 and values["annotate_key_p50_over_floor_picture_first"] > 0
    assert not [name for name in values if "grid" in name or "people" in name]
    assert values["burst_keys"] == annotate_rows.BURST_KEYS
    accounted_for(values, "burst")


@pytest.mark.slow
@pytest.mark.browser
def test_interface_benchmark_compares_grid_and_review_times_with_a_minimal_page(monkeypatch):
    monkeypatch.setattr("benchmarks.interface.grid_review_rows.GRIDS_IN_HAND", 12)
    values = numbers(interface.measure(keys=3, rows=["grid", "review"]), "interface")
    in_order(values, "floor_enter", "grid_enter", "floor_accept", "review_accept", "floor_heatmap", "review_heatmap")
    assert values["grid_enter_p50_frames"] == pytest.approx(
        values["grid_enter_p50_ms"] / presses.FRAME_MILLISECONDS, abs=0.01
    )
    assert values["review_heatmap_p50_frames"] > 0 and values["grid_enter_p50_over_floor"] > 0
    accounted_for(values, "grid_burst")
    accounted_for(values, "review_burst")


@pytest.mark.slow
@pytest.mark.browser
def test_interface_benchmark_compares_the_gallery_with_a_plain_list_of_the_same_images(monkeypatch):
    for name, value in {
        "LISTED_IMAGES": 1000,
        "IMAGE_FILES": 60,
        "BATCH_CELLS": 30,
        "WHEEL_STEPS": 8,
        "SCROLL_BAR_JUMPS": 2,
    }.items():
        monkeypatch.setattr(gallery_rows, name, value)
    values = numbers(interface.measure(keys=3, rows=["gallery"]), "interface")
    for page in ("floor", "gallery"):
        in_order(values, f"{page}_scroll_frame", f"{page}_jump", f"{page}_batch_30")
        assert values[f"{page}_scroll_frames"] > 0 and 0 <= values[f"{page}_scroll_in_time_percent"] <= 100
    assert values["gallery_batch_30_p50_over_floor"] > 0 and values["gallery_batch_30_p50_over_floor_picture_first"] > 0
    assert values["gallery_scroll_frame_p95_over_floor"] > 0 and values["gallery_jump_p50_over_floor"] > 0


@pytest.mark.slow
@pytest.mark.browser
def test_interface_benchmark_times_four_concurrent_annotators_and_a_sustained_pace(monkeypatch):
    monkeypatch.setattr(annotate_rows, "PACED_IMAGES", 480)
    values = numbers(interface.measure(keys=3, rows=["people", "pace"]), "interface")
    in_order(values, "floor_key_4_people", "annotate_key_4_people", "floor_pace", "annotate_pace")
    assert 20 <= values["pace_images"] <= 28
    assert 0 <= values["annotate_pace_stalls"] <= values["pace_images"]
    assert values["annotate_pace_max_ms"] >= values["annotate_pace_p95_ms"]


@pytest.mark.slow
@pytest.mark.browser
def test_interface_benchmark_times_the_annotate_page_while_a_worker_trains():
    values = numbers(interface.measure(keys=3, rows=["training"]), "interface")
    in_order(values, "floor_key_training", "annotate_key_training", "annotate_click_training")
    assert values["runs_published_in_training_rows"] >= 0


def accounted_for(values, burst):
    """Nothing may ever land on a wrong image or twice, however slow the machine; what came too early counts as lost."""
    decided = values[f"{burst}_on_the_right_image"]
    assert decided == values[f"{burst}_keys"] - values[f"{burst}_lost"] > 0
    assert values[f"{burst}_decisions"] == decided and values[f"{burst}_doubled"] == 0


def test_interface_benchmark_refuses_an_unknown_row_and_lists_the_known_ones():
    with pytest.raises(AnnotatorError, match=r"(?s)'keys'.*'heat'.*There is: key, training, 300-classes"):
        interface.measure(rows=["keys", "burst", "heat"])


def test_rapid_key_sequence_counts_correct_lost_and_duplicated_decisions():
    burst = bursts.Burst(
        pressed=[(1, "a"), (2, "b"), (3, "c"), (None, "d")],
        decided=[(1, "a"), (1, "a"), (2, "c")],
        pause_milliseconds=[20.0, 20.0, 20.0],
    )
    assert burst.right_image_count == 1
    assert burst.lost_count == 3
    assert burst.doubled_count == 1
    assert burst.build_figures("it")["it_decisions"] == 3


def test_generated_benchmark_images_are_all_different_and_readable(tmp_path):
    projects.write_sample_images(tmp_path / "images", 330)
    paths = sorted((tmp_path / "images").iterdir())
    assert len({path.read_bytes() for path in paths}) == 330
    with Image.open(paths[-1]) as picture:
        assert picture.convert("RGB").getextrema() != ((0, 0), (0, 0), (0, 0))


def test_missing_configured_browser_raises_an_error(monkeypatch):
    monkeypatch.setenv(browser.CHROMIUM_VARIABLE, "/nowhere/chromium")
    with pytest.raises(AnnotatorError, match="names '/nowhere/chromium'"):
        browser.find_chromium()


def test_browser_search_without_chromium_raises_an_error_with_install_instructions(monkeypatch, tmp_path):
    monkeypatch.delenv(browser.CHROMIUM_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "MAC_PLACES", ())
    with pytest.raises(AnnotatorError, match="playwright install chromium"):
        browser.find_chromium(str(tmp_path / "chromium"))
    (tmp_path / "chromium").touch(mode=0o755)
    assert browser.find_chromium() == str(tmp_path / "chromium")


@pytest.mark.process
def test_waiting_for_a_benchmark_process_that_has_ended_raises_an_error_with_its_output():
    with (
        pytest.raises(AnnotatorError, match="no-such-command"),
        child_processes.run_module("annotator", "no-such-command") as child,
    ):
        child_processes.wait_for(lambda: child.poll() is not None, "its end")


@pytest.mark.process
def test_child_process_is_ended_after_an_error():
    with pytest.raises(RuntimeError), child_processes.run_module("http.server", "--bind", "127.0.0.1", "0") as child:
        raise RuntimeError
    assert child.returncode is not None


def descendants(pid: int) -> set[int]:
    """The processes that one has started, and those they have started."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def run_on(pids: set[int]) -> set[int]:
    """Those of some processes that have not ended."""
    states = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            states[pid] = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return {pid for pid, state in states.items() if state != "Z"}


BENCH = """
import sys, time
from benchmarks import freshness
from harness import child_processes as processes
from harness.browser import open_chromium
kind = sys.argv[1]
if kind == "worker":
    freshness.measure(240, 3, answers=100_000, repetitions=1)
elif kind == "server":
    with processes.run_server("http.server", "--bind", "127.0.0.1"):
        time.sleep(600)
else:
    with open_chromium() as browser:
        browser.new_page()
        time.sleep(600)
"""
WORDS = {"worker": b"worker", "server": b"http.server", "browser": b"--type=renderer"}


@pytest.fixture
def short_folder() -> Iterator[str]:
    """Chromium does not start where the path of its socket in the temporary folder is longer than 107 letters."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield folder


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("kind", [*list(WORDS)[:2], pytest.param("browser", marks=pytest.mark.browser)])
def test_killed_benchmark_leaves_no_child_process(kind, short_folder, processes):
    environment = child_processes.build_environment({"TMPDIR": short_folder})
    bench = subprocess.Popen([sys.executable, "-P", "-c", BENCH, kind], env=environment, stderr=subprocess.DEVNULL)
    processes.append(bench)

    def all_started() -> set[int]:
        assert bench.poll() is None
        started, words = descendants(bench.pid), b""
        for pid in started:
            with contextlib.suppress(OSError):
                words += Path(f"/proc/{pid}/cmdline").read_bytes()
        return started if WORDS[kind] in words else set()

    started = until(all_started)
    bench.kill()
    bench.wait()
    try:
        until(lambda: not run_on(started))
    finally:
        for pid in run_on(started):
            os.kill(pid, 9)


HOLD = """
from annotator.benchmark.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "project").mkdir()
    print(folder, flush=True)
    input()
"""


def test_next_benchmark_deletes_only_the_folder_of_a_killed_benchmark(tmp_path, processes, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    folders = {}
    for fate in ("killed", "at work"):
        command = [sys.executable, "-P", "-c", HOLD]
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        folders[fate] = Path(processes[-1].stdout.readline().strip())
    (tmp_path / "annotator-bench-of-somebody-else").mkdir()
    processes[0].kill()
    processes[0].wait()
    assert all(folder.parent == tmp_path and (folder / "project").exists() for folder in folders.values())
    with scratch_folder() as own:
        left = {path.name for path in tmp_path.iterdir()}
    assert left == {own.name, folders["at work"].name, "annotator-bench-of-somebody-else"}
    processes[1].communicate("\n")
    assert [path.name for path in tmp_path.iterdir()] == ["annotator-bench-of-somebody-else"]


@pytest.mark.slow
@pytest.mark.process
def test_export_import_benchmark_reports_labels_changed_in_the_round_trip(tmp_path, monkeypatch):
    facts = tmp_path / "site" / "wrong-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[annotator.formats]\nwrong = wrong:WRONG\n")
    (tmp_path / "site" / "wrong.py").write_text(
        "from dataclasses import replace\nfrom annotator.exchange.formats.csv_table import CSV\nfrom "
        "annotator.exchange.formats.format import FormatLosses\nfrom annotator.exchange.formats.export_view import "
        "STATE_ABSENT, STATE_PRESENT, TableColumns\ndef write(view, out):\n    (block,) = view.blocks()\n    row, "
        "column = (block.states == STATE_PRESENT).nonzero()\n    block.states[row[0], column[0]] = STATE_ABSENT\n    "
        "CSV.write(replace(view, columns=TableColumns(long=True), blocks=lambda: iter([block])), out)\nWRONG = "
        "replace(CSV, name='wrong', write=write, lost=FormatLosses(unsure=False, provenance=False))\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), *sys.path]))
    words = ["data", "--images", "50", "--classes", "4", "--formats", "wrong", "--json"]
    command = [sys.executable, "-P", "-m", "benchmarks", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    figures = result["figures"]
    assert figures["images"] == 50
    assert figures["labels"] > 50
    for step in ("out", "read", "commit"):
        assert figures[f"wrong_{step}_images_per_second"] > 0
        assert figures[f"wrong_{step}_peak_mb"] > figures["python_peak_mb"]
    assert result["ratios"]["wrong_in_over_floor"] > 0
    assert f"wrong: 1 of {figures['labels']} cells differ" in result["wrong"][0]
    assert "WRONG wrong: " in done.stderr

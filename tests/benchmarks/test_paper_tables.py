"""The tables of the papers: their figures, that each row has a command that runs, and what is set beside the print."""

import json
import shlex
from math import ceil
from pathlib import Path

import pytest
from harness.pictured_sets import pictured
from harness.tables import over
from harness.tiny_sets import make_coco, make_cub, make_nus, make_voc, write
from typer.testing import CliRunner

from annotator.benchmark.datasets import load_dataset
from annotator.benchmark.papers.__main__ import replace_commands
from annotator.benchmark.papers.duration import Duration, Pace
from annotator.benchmark.papers.tables import format_command, load_tables
from annotator.cli import app
from annotator.errors import AnnotatorError

pytestmark = [pytest.mark.training, pytest.mark.usefixtures("one_thread")]

SMALL = "efficientnet_lite0"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "papers.md"
MAKERS = {"voc": make_voc, "coco": make_coco, "nus": make_nus, "cub": make_cub}


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Tiny sets of the papers, with pictures, by name."""
    made = {name: pictured(make(tmp_path_factory.mktemp(name))) for name, make in MAKERS.items()}
    for part, images in (("Train", 14), ("Test", 6)):  # the sky is everywhere: there are labels to be hidden
        write(made["nus"] / f"Groundtruth/TrainTestLabels/Labels_sky_{part}.txt", *[1] * images)
    return made


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("work")


def figures(table: str, row: str, regime: str = "finetune") -> list[float | None]:
    return [cell.paper for cell in load_tables()[table].cells if (cell.row, cell.regime) == (row, regime)]


def test_paper_tables_that_quote_each_other_have_equal_figures():
    for row in ("AN", "AN-LS"):
        for regime in ("linear", "finetune"):
            assert figures("cole-a1", row, regime) == figures("cole-1", row, regime)[:2]
    for row in ("DW", "L1R", "N-LS", "ROLE + LinearInit", "EM + APL"):
        assert figures("opml-2", row) == figures("em-1", row)
    for row in ("Focal", "ASL"):
        assert figures("opml-3", row) == figures("em-1", row)
    assert (
        figures("opml-5", "BCE") == figures("em-1", "BCE, all labels")
        and figures("gr-3", "k, v, L (GR)") == (figures("gr-2", "GR")[:2])
    )
    for row in ("WAN", "EPR", "AN"):
        assert figures("lagc-2", row) == figures("cole-1", row)
    assert figures("lagc-2", "ROLE") == figures("cole-1", "ROLE + LinearInit")
    for row in ("EM", "EM + APL"):
        assert figures("lagc-2", row) == pytest.approx(figures("em-1", row), abs=0.0501)
    assert figures("lagc-3", "AN, PLC, LAC, two stages, queue (LAGC)", "lem") == figures("lagc-2", "LAGC", "lem")[:2]


def test_unreproducible_paper_row_states_the_reason_and_has_no_command():
    is_open = {
        (cell.table, cell.row, cell.regime) for table in load_tables().values() for cell in table.cells if cell.open
    }
    assert ("gr-2", "MIME", "finetune") in is_open and ("lagc-2", "EN + SCL", "finetune") in is_open
    assert ("lagc-2", "EM", "lem") in is_open and ("lagc-2", "EM", "finetune") not in is_open
    for table in load_tables().values():
        for cell in table.cells:
            assert (cell.changes is None) == bool(cell.open), cell
    with pytest.raises(ValueError, match="MIME is not built"):
        next(cell for cell in load_tables()["gr-2"].cells if cell.row == "MIME").make_options()


def test_papers_page_contains_the_current_command_of_every_row():
    page = PAGE.read_text(encoding="utf-8")
    assert page == replace_commands(page), "write it anew: python -m annotator.benchmark.papers docs/papers.md"


def distinct() -> list[tuple[str, str]]:
    """Every command of the tables, without its set: (the name of a row that it repeats, the words after the root)."""
    found: dict[str, str] = {}
    for table in load_tables().values():
        for cell in table.cells:
            if cell.changes is not None:
                found.setdefault(format_command(cell.make_options(seeds=3), "SET", "ROOT"), f"{table.name}, {cell.row}")
    return [(row, line) for line, row in found.items()]


def run(line: str, name: str, root: Path, work: Path) -> dict:
    """Run one epoch of a command of the page, small."""
    words = shlex.split(line.replace("SET", name, 1).replace("ROOT", shlex.quote(str(root)), 1))[1:]
    words += ["--epochs", "1", "--seeds", "1", "--size", "64", "--backbone", SMALL, "--device", "cpu"]
    if "cole" not in words:  # a protocol that tries batches of its own
        words += ["--batch", "8"]
    if "lagc" in words:
        words += ["--set", "lagc.width=8"]  # as wide as the map of this network, its decoder has 140 million weights
    done = CliRunner().invoke(app, [*words, "--work", str(work), "--json"])
    assert done.exit_code == 0, (line, done.output, done.exception)
    return json.loads(done.stdout)["rows"][0]


@pytest.mark.slow
@over(row__line=distinct())
def test_every_command_of_the_papers_page_parses_and_trains(sets, kept, row, line):
    found = run(line, "voc", sets["voc"], kept)
    assert 0 < found["test_map"] <= 1 and found["epoch"] == [1]


@pytest.mark.slow
@over(name=MAKERS)
def test_gr_trains_on_every_benchmark_set_with_the_published_settings(sets, kept, name):
    (cell,) = (cell for cell in load_tables()["gr-2"].cells if (cell.row, cell.dataset) == ("GR", name))
    assert 0 < run(format_command(cell.make_options(), "SET", "ROOT"), name, sets[name], kept)["test_map"] <= 1


def papers(root: Path, work: Path, *words: str):
    line = ["bench", "papers", "--dataset", "voc", "--root", root, "--backbone", SMALL, "--work", work, "--epochs", 1]
    return CliRunner().invoke(app, [str(word) for word in (*line, "--size", 64, "--device", "cpu", *words)])


@pytest.mark.slow
def test_bench_papers_compares_published_and_measured_figures_and_resumes(sets, tmp_path):
    work, page = tmp_path / "work", tmp_path / "cole-2.md"
    first = papers(sets["voc"], work, "--table", "cole-2", "--row", "AN", "--json")
    assert first.exit_code == 0, (first.output, first.exception)
    (an,) = json.loads(first.stdout)["rows"]
    assert (an["row"], an["paper"]) == ("AN", 85.8) and an["difference"] == pytest.approx(an["ours"] - 85.8, abs=0.01)
    assert "--measures train_map" in an["command"] and "1 rows, 0 of them open, 0 done before" in first.stderr
    again = papers(sets["voc"], work, "--table", "cole-2", "--row", "AN", "--row", "AN-LS", "--markdown", page)
    assert again.exit_code == 0 and "1 done before" in again.stderr and "(done before)" in again.stderr
    assert f"| AN | linear | 85.8 | {an['ours']:.2f} ± 0.00 | {an['difference']:+.1f} |" in page.read_text()
    assert "annotator bench methods --dataset voc" in page.read_text()


@pytest.mark.slow
def test_bench_papers_plan_estimates_the_time_and_trains_no_rows(sets, tmp_path):
    done = papers(sets["voc"], tmp_path, "--table", "gr-2", "--row", "GR", "--row", "MIME", "--batch", 2, "--plan")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "at most about" in done.stderr and "MIME (finetune), open: MIME is not built" in done.stdout
    assert not list(tmp_path.glob("result*"))


def test_duration_estimate_equals_epochs_times_images_divided_by_pace(sets, tmp_path):
    dataset = load_dataset("voc", sets["voc"])
    train, val, test = (len(part) for part in (dataset.train, dataset.val, dataset.test))
    rows = {cell.row: cell for cell in load_tables()["em-1"].cells if cell.dataset == "voc"}
    expected = {
        row: Duration(dataset, lambda *_: Pace(train=2.0, predict=4.0)).estimate_seconds(
            rows[row].make_options(work=tmp_path, backbone=SMALL).check_and_resolve()
        )
        for row in ("EM", "ROLE + LinearInit")
    }
    linear = next(cell for cell in load_tables()["cole-2"].cells if (cell.dataset, cell.row) == ("voc", "ROLE"))
    options = linear.make_options(work=tmp_path, backbone=SMALL).check_and_resolve()
    duration = Duration(dataset, lambda *_: Pace(train=2.0, predict=4.0), lambda *_: 0.5)
    steps = {batch: 25 * ceil(train / batch) for batch in (8, 16)}
    tried_and_run = 0.5 * (4 * (steps[8] + steps[16]) + steps[8])
    assert duration.estimate_seconds(options) == pytest.approx((train + val + test) / 4 + tried_and_run)
    assert duration.estimate_seconds(options) == pytest.approx(tried_and_run)  # the features are there
    assert expected["EM"] == pytest.approx(3 * (10 * train / 2 + (10 * val + train + test) / 4))
    # Of 35 epochs 25 have a frozen backbone.
    assert expected["ROLE + LinearInit"] == pytest.approx(3 * (10 * train / 2 + (35 * val + train + test) / 4))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--table", "cole-9"], "No table is called 'cole-9'"),
        (["--table", "cole-2", "--row", "ROLLE"], "has no row 'ROLLE'. Did you mean 'ROLE'"),
        (["--table", "cole-2", "--regime", "finetune"], "has no regime 'finetune'"),
        (["--table", "cole-2", "--batch", "2"], "No row of these takes --batch"),
        (["--table", "gr-fig3", "--markdown", "nowhere/a.md"], "there is no folder"),
    ],
)
def test_bench_papers_refuses_unknown_tables_rows_and_options(sets, tmp_path, words, told):
    done = papers(sets["voc"], tmp_path, *words)
    assert isinstance(done.exception, AnnotatorError) and told in str(done.exception)
    listed = CliRunner().invoke(app, ["bench", "papers"])
    assert listed.stdout.count("\n") == len(load_tables()) and "gr-2" in listed.stdout

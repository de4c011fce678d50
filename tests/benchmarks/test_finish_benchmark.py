"""`bench finish`: questions are checked, answers timed, what a tool certifies is held against the truth."""

import json
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from annotator.benchmark.finish import drawing, finish_measurement, measured_times, sets
from annotator.benchmark.finish.adapters import ProcessTool, make_class_command
from annotator.benchmark.finish.clock import Clock, Watch
from annotator.benchmark.finish.protocol import (
    MAX_ASKS_PER_CELL,
    PROTOCOL_VERSION,
    Question,
    QuestionChecker,
    Task,
    WrongTool,
)
from annotator.benchmark.finish.run import (
    RUN_CERTIFIED,
    RUN_FAILED,
    RUN_GAVE_UP,
    RUN_NOT_FINISHED,
    RUN_TOO_EARLY,
    play_tool,
)
from annotator.benchmark.finish.tools import TOOLS
from annotator.benchmark.finish.tools.baselines import FormTool
from annotator.benchmark.finish.tools.binomial_audit import BinomialAudit, choose_sample_size, compute_upper_limit
from annotator.benchmark.plots import draw_recall_curves
from annotator.benchmark.reports import format_markdown
from annotator.benchmark.simulated_people import Person
from annotator.errors import AnnotatorError
from annotator.records import ABSENT, PRESENT
from annotator.snapshot.time_model import TimeModel
from annotator.store.labels.audits import OPEN

ROOT = Path(__file__).resolve().parents[2]
DOC = (ROOT / "docs" / "finish-benchmark.md").read_text(encoding="utf-8")
TRUTH = np.random.default_rng(0).random((30, 4)) < 0.3
GRID = Question("grid", (0, 1, 2), (1,))


def task(work: Path, truth: np.ndarray = TRUTH) -> Task:
    images = tuple(Path(f"/photos/{number:02}.jpg") for number in range(len(truth)))
    return Task("made up", images, ("a", "b", "c", "d"), 0.95, 0.99, 0.95, 0, work)


def played(tool, tmp_path, *, noisy: bool = False) -> dict:
    return play_tool(tool, task(tmp_path), TRUTH, Person.build(TRUTH, noisy=noisy, seed=0), Clock())


class ByImage:
    """All classes of one image after the other; says that it is done after `enough` of them."""

    certifies_by = "counting"

    def __init__(self, enough: int = 30, repeats: int = 1):
        self.enough, self.order, self.told = enough, [row for row in range(30) for _ in range(repeats)], {}

    def start(self, task):
        self.task = task

    def ask(self):
        return Question("image", (self.order.pop(0),), (0, 1, 2, 3)) if self.order else None

    def answer(self, question, answer):
        self.told |= dict(zip(question.cells, answer.present, strict=True))

    def labels(self):
        return [cell for cell, present in self.told.items() if present]

    def certifies(self):
        return len(self.told) >= 4 * self.enough

    def close(self):
        pass


def test_finish_benchmark_adds_the_seconds_of_the_time_model_per_answer():
    watch, model = Watch(Clock()), TimeModel()
    assert watch.add_answer(GRID, 2) == pytest.approx(model.estimate_grid_seconds(3, 2))
    assert watch.add_answer(Question("image", (0,), (0, 1)), 1) == pytest.approx(model.estimate_image_seconds(2, 1))
    assert watch.add_answer(Question("check", (0,), (0, 1)), 0) == pytest.approx(model.estimate_image_seconds(2, 2))
    assert watch.add_answer(Question("click", (0,), (0, 1)), 1) == pytest.approx(model.click)
    assert watch.spent.actions == 3 + 2 + 3 + 1


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Question("gird", (0,), (0,)), r"no kind 'gird'. Did you mean 'grid'"),
        (Question("grid", (30,), (0,)), "no image 30: they are numbered 0 to 29"),
        (Question("grid", (0, -1), (0, 1)), "no image -1.*asks about one class, this one about 2"),
        (Question("image", (0, 0), (0,)), "same image twice.*asks about one image, this one about 2"),
        (Question("image", (), (0,)), "names no image"),
        (Question("image", (0,), ("a",)), "'a' is no number"),
        (Question("image", (0,), (0, 1), (True,)), "1 preset answers for 2 pairs"),
        (Question("click", (0,), (0, 1), (True, False)), "'click' starts without answers"),
    ],
)
def test_finish_benchmark_refuses_an_invalid_question_of_a_tool_with_the_reason(question, said):
    with pytest.raises(WrongTool, match=said):
        QuestionChecker(30, 4).check_question(question)


def test_finish_benchmark_stops_a_tool_that_repeats_a_question_too_often(tmp_path):
    done = played(ByImage(enough=31, repeats=MAX_ASKS_PER_CELL + 1), tmp_path)
    assert (
        done["ended"] == RUN_FAILED
        and f"asked {MAX_ASKS_PER_CELL + 1} times" in done["why"]
        and done["seconds"] is None
    )
    assert played(ByImage(enough=31, repeats=MAX_ASKS_PER_CELL), tmp_path)["ended"] == RUN_NOT_FINISHED


def test_tool_that_stops_asking_without_certifying_is_reported_as_given_up(tmp_path):
    done = played(ByImage(enough=31), tmp_path)
    assert done["ended"] == RUN_GAVE_UP and done["seconds"] is None and done["true"] is not None


def test_tool_that_claims_the_goal_too_early_gets_no_time_but_its_true_goal_time(tmp_path):
    early, honest = played(ByImage(enough=20), tmp_path), played(ByImage(), tmp_path)
    assert early["ended"] == RUN_TOO_EARLY and early["seconds"] is None
    assert early["claim"]["decided"]["recall"] < 0.95 and early["true"]["seconds"] > early["claim"]["seconds"]
    assert honest["ended"] == RUN_CERTIFIED and honest["final"]["recall"] == 1
    usual = TimeModel()
    assert honest["seconds"] == pytest.approx(
        30 * usual.estimate_image_seconds(4, 0) + TRUTH.sum() * usual.change, abs=0.1
    )
    assert honest["true"]["seconds"] < honest["seconds"] and honest["actions"] == 30 + TRUTH.sum()


def test_form_tool_with_a_noisy_annotator_claims_the_goal_too_early(tmp_path):
    truth = np.random.default_rng(1).random((400, 4)) < 0.3
    person = Person.build(truth, noisy=True, seed=0)
    done = play_tool(FormTool(), task(tmp_path, truth), truth, person, Clock())
    assert done["ended"] == RUN_TOO_EARLY and done["claim"]["decided"]["recall"] < 0.96


def test_simulated_answer_to_a_click_question_names_one_present_class_or_none(tmp_path):
    heard = []

    class Clicks(ByImage):
        def ask(self):
            return Question("click", (self.order.pop(0),), (1, 3)) if self.order else None

        def answer(self, question, answer):
            heard.append((question.images[0], answer.present))

    played(Clicks(), tmp_path)
    for image, present in heard:
        there = TRUTH[image, [1, 3]]
        if not there.any():
            assert present == (False, False)
        else:
            (named,) = [place for place, said in enumerate(present) if said]
            assert there[named] and present[1 - named] is None


def test_invalid_output_of_a_benchmarked_tool_is_reported(tmp_path):
    class Broken(ByImage):
        def labels(self):
            return [(99, 0)] if self.told else []

    assert "class 0 of image 99" in played(Broken(), tmp_path)["why"]
    broken = ByImage()
    broken.order = ["first"]
    assert "'first' is no number of an image" in played(broken, tmp_path)["why"]


def test_binomial_upper_limit_equals_the_clopper_pearson_limit():
    assert compute_upper_limit(0, 100, 0.05) == pytest.approx(1 - 0.05**0.01)
    assert compute_upper_limit(5, 5, 0.05) == 1.0
    # The limit is where so few positives have just the probability that may be missed.
    limit, draws = compute_upper_limit(3, 50, 0.05), np.random.default_rng(0).random((20_000, 50))
    assert ((draws < limit).sum(1) <= 3).mean() == pytest.approx(0.05, abs=0.006)


@pytest.mark.slow
def test_binomial_audit_certifies_insufficient_recall_in_at_most_5_percent_of_runs():
    """90 of 100 positives are found, 10 among 300 open pairs: recall 0.90, where 0.95 is to be certified."""
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        labels = np.full((200, 2), ABSENT)
        labels[:90, 0] = PRESENT
        labels[100:, :], labels[90:100, :] = OPEN, OPEN
        truth = np.zeros((200, 2), bool)
        truth[90:100, 0] = True
        audit = BinomialAudit(0.95, 0.95, rng)
        certain = np.zeros((200, 2), np.float32)  # a model that is sure that nothing is missing, and wrong
        while question := audit.next_question(labels, certain):
            for image, class_ in question.cells:
                labels[image, class_] = PRESENT if truth[image, class_] else ABSENT
        wrong += audit.certified and labels[truth].tolist().count(PRESENT) < 5
    assert wrong / 200 <= 0.05


def test_audit_sample_size_is_none_when_it_needs_most_of_the_unanswered_labels():
    assert choose_sample_size(10_000, allowed=100, rate=0.0, miss=0.025) == pytest.approx(365, rel=0.15)
    assert choose_sample_size(200, allowed=2, rate=0.0, miss=0.025) is None


PUBLISHED = {
    "our own": ("kind,cells,changes,seconds\ngrid,24,2,26.8\nimage,10,1,30\n", {"grid": 2.0, "image": 3.0}),
    "COCO-AB": (
        'image_id,timeSpent,actionHistories\n1,120000,"[{""actionType"": ""add""}, {""actionType"": ""move""}]"\n'
        "2,9000000,[]\n",
        {"image": 120 / (1 + 1 + 80 * 0.7 + 1)},
    ),
    "CIFAR-10H": (
        "annotator_id,trial_index,is_attn_check,reaction_time\n0,0,0,5000\n0,1,1,100\n0,2,0,-3\n",
        {"click": 2.0},
    ),
    "ImageNet-AB": (
        'imageID,selected,hoveredRecord\na,true,"[{""action"": ""enter"", ""time"": 1000}, '
        '{""action"": ""leave"", ""time"": 3700}]"\n',
        {"grid": 2.0},
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_time_tables_of_published_studies_are_read_in_their_original_columns(name, tmp_path):
    text, factors = PUBLISHED[name]
    (tmp_path / "times.csv").write_text(text)
    clock = measured_times.read_times(tmp_path / "times.csv")
    assert (
        name in measured_times.TIME_TABLE_FORMATS
        and f"`{'`, `'.join(measured_times.TIME_TABLE_FORMATS[name][0])}`" in DOC
    )
    for kind, source in clock.sources.items():
        assert clock.factors[kind] == pytest.approx(factors.get(kind, 1.0), rel=1e-3)
        assert (f"columns as {name}" in source) == (kind in factors) and (source == "assumed") == (kind not in factors)


def test_time_table_errors_name_their_lines(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text("kind,cells,changes,seconds\ngrid,24,2,20\nlook,1,0,3\ngrid,x,0,3\ngrid,2,3,4\n")
    with pytest.raises(AnnotatorError, match=r"line 3: there is no kind 'look'(.|\n)*line 4(.|\n)*line 5: 3 changes"):
        measured_times.read_times(path)
    path.write_text("seconds\n3\n")
    with pytest.raises(AnnotatorError, match=r"has the columns seconds(.|\n)*reaction_time \(CIFAR-10H\)"):
        measured_times.read_times(path)
    path.write_text("kind,cells,changes,seconds\ngrid,24,2,0\n")
    with pytest.raises(AnnotatorError, match="no time between"):
        measured_times.read_times(path)


@pytest.mark.slow
def test_synthetic_datasets_are_determined_by_name_and_seed_and_match_their_description(tmp_path):
    shown = {}
    for name, recipe in drawing.SET_RECIPES.items():
        drawing.draw_set(tmp_path / name, name, recipe.classes, 0)
        rows = [line.split(",")[1] for line in (tmp_path / name / "truth.csv").read_text().splitlines()[1:]]
        shown[name] = [row.split("|") if row else [] for row in rows]
        assert len({label for row in shown[name] for label in row}) == recipe.classes
    sizes = {name: np.mean([len(row) for row in rows]) for name, rows in shown.items()}
    assert sizes["many"] > 2 * sizes["rare"]
    for seed, place in ((0, "again"), (1, "other")):
        drawing.draw_set(tmp_path / place, "few", 5, seed)
    first, again, other = (tmp_path / place for place in ("few", "again", "other"))
    assert (first / "truth.csv").read_text() == (again / "truth.csv").read_text()
    assert (first / "images" / "0003.jpg").read_bytes() == (again / "images" / "0003.jpg").read_bytes()
    assert (first / "images" / "0003.jpg").read_bytes() != (other / "images" / "0003.jpg").read_bytes()


def test_conflicting_benchmark_options_are_refused_before_measuring(tmp_path):
    for options, said in (
        ({"sets": ["fewer"]}, "Did you mean 'few'"),
        ({"tools": ["autopilt"]}, "Did you mean 'autopilot'"),
        ({"persons": ["noise"]}, "noisy"),
        ({"images": tmp_path}, "give both"),
        ({"images": tmp_path, "truth": tmp_path, "sets": ["few"]}, "one kind at a time"),
        ({"recall": 1.5}, "up to 1"),
        ({"commands": [""]}, "needs a command"),
        ({"tools": ["none"]}, "leaves no tool"),
    ):
        with pytest.raises(AnnotatorError, match=said):
            finish_measurement.measure_tools(finish_measurement.Options(**options))


def blocks(kind: str) -> list[tuple[str, str]]:
    """The files that the page gives in full: name and text."""
    return re.findall(rf"`(\w+\.py)`[^`]*:\n\n```{kind}\n(.*?)^```", DOC, re.DOTALL | re.MULTILINE)


@pytest.mark.process
def test_example_tools_of_the_documentation_run_and_both_interfaces_give_equal_figures(tmp_path, annotator):
    files = dict(blocks("python"))
    assert set(files) == {"by_class.py", "by_lines.py"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (line,) = [line for line in DOC.splitlines() if "--tool-command" in line and line.startswith("annotator")]
    words = [
        word.replace("python by_lines.py", f"{shlex.quote(sys.executable)} by_lines.py") for word in shlex.split(line)
    ]
    outputs = ["--json", "--count", "24", "--plot", "plot.png", "--markdown", "table.md"]
    result = json.loads(annotator(*words[1:], *outputs).stdout)
    form, by_class, by_lines = result["rows"]
    assert form["tool"] == "form" and by_class["tool"] == "by_class.py:ByClass" and "by_lines.py" in by_lines["tool"]
    kept = ("ended", "seconds", "actions", "claim", "true", "final", "certifies_by")
    assert {key: by_class[key] for key in kept} == {key: by_lines[key] for key in kept}
    assert by_class["ended"] == form["ended"] == RUN_CERTIFIED and by_class["seconds"] != form["seconds"]
    assert (
        result["protocol"] == PROTOCOL_VERSION and f"Protocol {PROTOCOL_VERSION}" in (tmp_path / "table.md").read_text()
    )
    assert "Made-up sets of 24 images, where the protocol has 160." in (tmp_path / "table.md").read_text()
    assert (tmp_path / "plot.png").stat().st_size > 5000 and f"protocol {PROTOCOL_VERSION}" in DOC.lower()


WRONG = {
    "import time; input(); time.sleep(60)": "no answer to 'start' within 1 seconds",
    "print(*['{}'] * 300, sep=chr(10), flush=True); input(); input()": "lacks 'labels'",
    "raise SystemExit('no licence')": "ended at 'start' with status 1: no licence",
    "input(); print('hello', flush=True); input()": "is no JSON object on one line: 'hello'",
    "input(); print('{}', flush=True); input(); print('{}', flush=True); input()": "lacks 'labels'",
}


@pytest.mark.process
@pytest.mark.parametrize("code", WRONG)
def test_tool_process_that_breaks_the_protocol_is_stopped_and_reported(code, tmp_path):
    tool = ProcessTool([sys.executable, "-c", code], timeout_seconds=1 if "sleep" in code else 60)
    done = played(tool, tmp_path)
    assert done["ended"] == RUN_FAILED and WRONG[code] in done["why"]


@pytest.mark.process
def test_tool_class_that_is_missing_or_incomplete_is_reported(tmp_path):
    (tmp_path / "half.py").write_text("class Half:\n    def start(self, task): pass\n")
    for spec, said in (
        (f"{tmp_path}/half.py:Half", "lacks ask, answer, labels, certifies"),
        (f"{tmp_path}/half.py:Whole", "has no 'Whole'"),
        (f"{tmp_path}/none.py:Half", "There is no file"),
        ("no_such_module:Half", "cannot be imported"),
    ):
        assert said in played(ProcessTool(make_class_command(spec)), tmp_path)["why"]
    assert "cannot be started" in played(ProcessTool([str(tmp_path / "nothing")]), tmp_path)["why"]


@pytest.mark.process
def test_failed_tool_is_reported_without_affecting_other_tools(tmp_path):
    rows = []
    for name, tool in (("good", ByImage()), ("early", ByImage(enough=10)), ("bad", ProcessTool(["/no/such/file"]))):
        rows.append({"set": "made up", "person": "perfect", "seed": 0, "tool": name, **played(tool, tmp_path)})
    sizes = {"set": "made up", "about": "", "images": 30, "classes": 4, "form_seconds": 60.0, "seed": 0}
    goal = {"recall": 0.95, "precision": 0.99, "is_of_the_protocol": True}
    result = {"protocol": PROTOCOL_VERSION, "date": "", "command": "", "goal": goal, "clock": Clock().as_json()}
    result |= {"sets": [sizes], "rows": rows, **finish_measurement._summarize_rows(rows)}
    report = finish_measurement.build_finish_report(result)
    assert [row[1] for row in report.tables[0].rows] == [RUN_CERTIFIED, "said done too early", RUN_FAILED]
    assert report.summary and [row[1:4] for row in report.summary.rows] == [
        ["1 of 1", "0", "0"],
        ["0 of 1", "1", "0"],
        ["0 of 1", "0", "1"],
    ]
    markdown = format_markdown(report)
    assert "FAILED bad on made up" in markdown and "Times of grid, image, check, click: assumed" in markdown
    draw_recall_curves(result, tmp_path / "plot.svg")
    assert "perfect person" in (tmp_path / "plot.svg").read_text() or (tmp_path / "plot.svg").stat().st_size > 5000


@pytest.fixture
def own(tmp_path, photos) -> finish_measurement.Options:
    """A folder of 24 photos with its truth."""
    truth = ["image,labels"]
    for path in sorted(photos.rglob("*.*")):
        names = [name for bit, name in enumerate(("fox", "heron", "deer")) if (int(path.stem) + 1) >> bit & 1]
        truth.append(f"{path.relative_to(photos).as_posix()},{';'.join(names)}")
    (tmp_path / "truth.csv").write_text("\n".join(truth) + "\n")
    return finish_measurement.Options(
        images=photos, truth=tmp_path / "truth.csv", persons=["perfect"], work=tmp_path / "work"
    )


def check_finished(result: dict, work: Path) -> None:
    for row in result["rows"]:
        assert row["ended"] == RUN_CERTIFIED and row["claim"]["decided"]["recall"] >= 0.95, row["why"]
        assert row["true"]["seconds"] <= row["seconds"] and row["certifies_by"]
    assert not list(work.glob("**/copy-*"))


@pytest.mark.slow
@pytest.mark.training
def test_autopilot_finishes_a_small_dataset_and_its_certified_claim_is_true(own):
    result = finish_measurement.measure_tools(replace(own, tools=["autopilot"]))
    check_finished(result, own.work)
    assert result["sets"][0]["set"] == sets.OWN_SET_NAME and result["sets"][0]["images"] == 24
    again = finish_measurement.measure_tools(replace(own, tools=["form"]))
    assert result["sets"][0]["fingerprint"] == again["sets"][0]["fingerprint"]


@pytest.mark.slow
def test_every_baseline_finishes_a_small_dataset_and_a_second_run_is_identical(own):
    result = finish_measurement.measure_tools(replace(own, tools=[name for name in TOOLS if name != "autopilot"]))
    check_finished(result, own.work)
    assert [row["tool"] for row in result["rows"]] == ["form", "random", "grids", "uncertainty"]
    again = finish_measurement.measure_tools(replace(own, tools=["grids"]))
    kept = ("seconds", "actions", "true")
    (grids,) = [row for row in result["rows"] if row["tool"] == "grids"]
    assert {key: again["rows"][0][key] for key in kept} == {key: grids[key] for key in kept}

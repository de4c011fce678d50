"""The report of a benchmark: on a terminal and in Markdown."""

import json

import pytest

from annotator.benchmark.reports import Report, ReportTable, format_markdown
from annotator.cli.bench.bench_outputs import check_output_files, output_result, print_report
from annotator.errors import AnnotatorError

TABLE = ReportTable(["method", "mAP"], [["`an`", "80.1"], ["a|b", "7.5"]])
REPORT = Report(["10 images."], [TABLE], ["mAP: mean."], ["FAILED a|b"], command="annotator bench methods")


def test_markdown_has_the_command_and_the_explanations_above_the_tables():
    assert format_markdown(REPORT) == (
        "`annotator bench methods`\n\n10 images.\n\nmAP: mean.\n\n"
        "| method | mAP |\n|---|---|\n| `an` | 80.1 |\n| a\\|b | 7.5 |\n\nFAILED a|b\n"
    )


def test_a_terminal_shows_no_backticks_and_the_explanations_below_the_tables(capsys):
    print_report(REPORT)
    assert capsys.readouterr().out == "10 images.\nmethod   mAP\nan      80.1\na|b      7.5\nmAP: mean.\nFAILED a|b\n"


def test_the_summary_is_the_first_table_in_markdown_and_the_last_on_a_terminal(capsys):
    runs = ReportTable(["tool"], [["form"]], "set one")
    report = Report(["10 images."], [runs], ["note"], summary=ReportTable(["totals"], [["1"]]), row_commands=["run"])
    assert format_markdown(report).endswith(
        "note\n\n| totals |\n|---|\n| 1 |\n\n**set one**\n\n| tool |\n|---|\n| form |\n\n```\nrun\n```\n"
    )
    print_report(report)
    assert capsys.readouterr().out == "10 images.\n\nset one\ntool\nform\n\ntotals\n1\n\nnote\n"


def test_json_is_printed_while_markdown_is_written(tmp_path, capsys):
    output_result({"figures": 1}, lambda result: REPORT, as_json=True, markdown=tmp_path / "a.md")
    assert json.loads(capsys.readouterr().out) == {"figures": 1}
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == format_markdown(REPORT)


def test_files_that_cannot_be_written_are_refused_before_the_work(tmp_path):
    check_output_files(tmp_path / "a.png", tmp_path / "a.md")
    for plot, markdown in (
        (tmp_path / "a.txt", None),
        (tmp_path / "b" / "a.png", None),
        (None, tmp_path / "b" / "a.md"),
    ):
        with pytest.raises(AnnotatorError, match="folder"):
            check_output_files(plot, markdown)

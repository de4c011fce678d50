"""The report of a benchmark: on a terminal and in Markdown."""

import json

import pytest

from annotator.benchmark.reports import Report, ReportTable, format_markdown
from annotator.cli.bench.bench_outputs import check_output_files, output_result, print_report
from annotator.errors import AnnotatorError

TABLE = ReportTable(["method", "mAP"], [["`an`", "80.1"], ["a|b", "7.5"]])
REPORT = Report(["10 images."], [TABLE], ["mAP: mean."], ["FAILED a|b"], command="annotator bench methods")


def test_markdown_report_shows_the_command_and_explanations_above_its_tables():
    assert format_markdown(REPORT) == (
        "`annotator bench methods`\n\n10 images.\n\nmAP: mean.\n\n"
        "| method | mAP |\n|---|---|\n| `an` | 80.1 |\n| a\\|b | 7.5 |\n\nFAILED a|b\n"
    )


def test_terminal_report_shows_explanations_below_its_tables_and_no_backticks(capsys):
    print_report(REPORT)
    assert capsys.readouterr().out == "10 images.\nmethod   mAP\nan      80.1\na|b      7.5\nmAP: mean.\nFAILED a|b\n"


def test_summary_table_is_first_in_a_markdown_report_and_last_in_a_terminal_report(capsys):
    runs = ReportTable(["tool"], [["form"]], "set one")
    report = Report(["10 images."], [runs], ["note"], summary=ReportTable(["totals"], [["1"]]), row_commands=["run"])
    assert format_markdown(report).endswith(
        "note\n\n| totals |\n|---|\n| 1 |\n\n**set one**\n\n| tool |\n|---|\n| form |\n\n```\nrun\n```\n"
    )
    print_report(report)
    assert capsys.readouterr().out == "10 images.\n\nset one\ntool\nform\n\ntotals\n1\n\nnote\n"


def test_benchmark_output_prints_json_and_writes_the_markdown_report_together(tmp_path, capsys):
    output_result({"figures": 1}, lambda result: REPORT, as_json=True, markdown=tmp_path / "a.md")
    assert json.loads(capsys.readouterr().out) == {"figures": 1}
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == format_markdown(REPORT)


def test_benchmark_output_paths_in_missing_folders_or_of_unknown_types_are_refused(tmp_path):
    check_output_files(tmp_path / "a.png", tmp_path / "a.md")
    for plot, markdown in (
        (tmp_path / "a.txt", None),
        (tmp_path / "b" / "a.png", None),
        (None, tmp_path / "b" / "a.md"),
    ):
        with pytest.raises(AnnotatorError, match="folder"):
            check_output_files(plot, markdown)

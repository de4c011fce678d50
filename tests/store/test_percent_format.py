"""100 % is said of all, 0 % of none, and of nothing in between."""

from pathlib import Path

import pytest

import annotator
from annotator.humanize import format_percent


@pytest.mark.parametrize(
    ("part", "of", "digits", "words"),
    [
        (0, 200, 0, "0 %"),
        (1, 1000, 0, "<1 %"),
        (1, 100, 0, "1 %"),
        (29, 100, 0, "29 %"),
        (0.29, 1, 0, "29 %"),
        (199, 200, 0, "99 %"),
        (999_999, 1_000_000, 0, "99 %"),
        (1 - 1e-15, 1, 0, "99 %"),
        (200, 200, 0, "100 %"),
        (0, 0, 0, "0 %"),
        (0.9996, 1, 1, "99.9 %"),
        (0.0004, 1, 1, "<0.1 %"),
        (0.875, 1, 1, "87.5 %"),
    ],
)
def test_format_percent_never_rounds_up(part, of, digits, words):
    assert format_percent(part, of, digits) == words


def test_format_percent_keeps_whole_percents():
    assert [format_percent(part, 100) for part in range(101)] == [f"{part} %" for part in range(101)]
    assert [format_percent(part / 100) for part in range(101)] == [f"{part} %" for part in range(101)]


@pytest.mark.parametrize("room", ["ui/pages", "cli"])
def test_page_and_command_modules_contain_no_percent_format_that_rounds_up(room):
    folder = Path(__file__).resolve().parents[2] / "annotator" / room
    files = [*folder.glob("*.py"), *folder.glob("*/*_page.py")]
    assert [path.name for path in files if ".0%}" in path.read_text(encoding="utf-8")] == []


@pytest.mark.browser
def test_probability_format_never_shows_0_or_100_percent(browser):
    script = (Path(annotator.__file__).parent / "ui" / "pages" / "shared" / "dom.js").read_text()
    page = browser.new_page()
    told = page.evaluate(
        """async ([script, values]) => {
          const { formatProbability } = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript"
          })));
          return values.map(formatProbability);
        }""",
        [script, [0, 0.0049, 0.006, 0.29, 0.994, 0.9951, 1]],
    )
    page.close()
    assert [one.replace("\N{NO-BREAK SPACE}", " ") for one in told] == [
        "<1 %",
        "<1 %",
        "1 %",
        "29 %",
        "99 %",
        ">99 %",
        ">99 %",
    ]

"""What the command line prints: plain through a pipe, in columns and with bars on a terminal, and never a control
sequence of somebody else's."""

import io

import pytest

from annotator.cli import printing

HOSTILE = "[red]a[/red] :smile: \x1b]0;owned\x07 \u202egpj \udce9 " + "long " * 40


class Stream(io.StringIO):
    """A stream that is a terminal or a pipe, whose encoding does not have every letter."""

    encoding = "utf-8"

    def __init__(self, tty: bool):
        super().__init__()
        self.isatty = lambda: tty


@pytest.fixture
def streams(monkeypatch):
    """Standard output and error, guarded as in the command line; call it with whether they are a terminal."""

    def guard(tty: bool) -> tuple[Stream, Stream]:
        out, err = Stream(tty), Stream(tty)
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stderr", err)
        monkeypatch.setenv("COLUMNS", "60")
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("NO_COLOR", raising=False)
        printing.guard_terminal()
        return out, err

    return guard


def test_piped_table_is_aligned_complete_and_without_control_characters(streams):
    out, _ = streams(tty=False)
    printing.print_table(("", "cells"), [("fox", "1,200"), (HOSTILE, "3")])
    title, fox, hostile = out.getvalue().splitlines()
    assert len(title) == len(fox) == len(hostile) and fox.startswith("fox  ") and fox.endswith("  1,200")
    assert hostile.count("long") == 40 and hostile.startswith(
        "[red]a[/red] :smile: \\x1b]0;owned\\x07 \\u202egpj \\udce9"
    )
    assert "\x1b" not in out.getvalue()


def test_terminal_table_wraps_long_names_and_escapes_control_characters(streams):
    out, _ = streams(tty=True)
    printing.print_table(("name", "cells"), [(HOSTILE, "3")])
    text = out.getvalue()
    assert "\x1b[1m" in text, "titles are bold"
    assert "[red]a[/red] :smile: \\x1b]0;owned\\x07" in text and "\x1b]" not in text and "\x07" not in text
    assert text.count("long") == 40 and len(text.splitlines()) > 4


def test_progress_bar_is_shown_on_a_terminal_but_not_through_a_pipe(streams):
    for tty in (True, False):
        out, err = streams(tty=tty)
        with printing.show_progress("Looking at images") as show:
            for done in range(0, 3001, 1000):
                show(done, 3000)
            print("meanwhile\x1b[2J")
        assert out.getvalue() == "meanwhile\\x1b[2J\n", "nothing is printed around the guard"
        assert ("Looking at images" in err.getvalue() and "3,000 of 3,000" in err.getvalue()) == tty
        assert tty or not err.getvalue()


def test_progress_bar_restores_the_cursor_after_an_error(streams):
    _, err = streams(tty=True)
    with pytest.raises(OSError), printing.show_progress("Looking at images") as show:
        show(1, 2)
        raise OSError
    assert err.getvalue().count("\x1b[?25l") == err.getvalue().count("\x1b[?25h") == 1

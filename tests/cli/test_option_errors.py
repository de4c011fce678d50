"""Options that exclude each other, or belong to another command, are refused with what to do."""

from collections.abc import Iterator

import pytest
import typer
from harness.tables import over
from typer.testing import CliRunner

from annotator.cli import app
from annotator.errors import AnnotatorError

EXCLUSIVE = [
    ("accept", "P", "--draw", "--undo", "b"),
    ("accept", "P", "--off", "--list"),
    ("accept", "P", "--rule-out", "fox", "--undo", "b"),
    ("accept", "P", "--precision", "0.9", "--undo", "b"),
    ("accept", "P", "--no-present", "--off"),
    ("adapt", "P", "--estimate", "--anew"),
    ("certificate", "P", "--target", "0.9", "--by", "place"),
    ("events", "P", "--gap", "1s", "--undo"),
    ("import", "P", "s3://bucket/x", "--in-place", "--labels", "a.csv"),
    ("import", "P", "s3://bucket/x", "--in-place", "--scores-as", "md"),
    ("predictions", "P", "a.csv", "--remove", "x"),
    ("predictions", "P", "--event-labels", "--remove", "x"),
    ("predictions", "P", "--remove", "x", "--dry-run"),
    ("predictions", "P", "a.csv", "--name", "x", "--event-labels"),
    ("relations", "P", "--is-a", "a=b", "--undo"),
    ("relations", "P", "--suggest", "--remove", "3"),
]


@over(words=EXCLUSIVE)
def test_options_that_exclude_each_other_are_refused_before_the_project_is_opened(words):
    done = CliRunner().invoke(app, list(words))
    assert isinstance(done.exception, AnnotatorError), done.exception
    flags = [word for word in words if word.startswith("--")]
    assert all(flag in str(done.exception) for flag in flags) and "no project" not in str(done.exception)


@pytest.mark.parametrize(
    "words", [("accept", "P", "--draw", "--precision", "0.9"), ("predictions", "P", "a.csv", "--name", "x")]
)
def test_options_that_go_together_are_not_refused(words):
    assert "There is no project" in str(CliRunner().invoke(app, list(words)).exception)


COMMAND = typer.main.get_command(app)


def list_options(command, words=()) -> Iterator[tuple[str, str]]:
    """(command, one of its visible options), of all commands below."""
    for name, below in getattr(command, "commands", {}).items():
        yield from list_options(below, (*words, name))
    for one in command.params if words else ():
        flags = [] if getattr(one, "hidden", True) else [*one.opts, *one.secondary_opts]
        yield from ((" ".join(words), flag) for flag in flags if flag.startswith("-"))


@over(words__option=list(list_options(COMMAND)))
def test_option_of_a_command_given_without_one_names_the_command(words, option):
    with pytest.raises(Exception, match="No such option") as refused:
        COMMAND.main([option, "x"], standalone_mode=False)
    commands = str(refused.value.message).partition("It is an option of: ")[2]
    assert f"annotator {words} {option}" in commands or " more." in commands


def test_option_of_another_command_is_named_with_that_command():
    done = CliRunner().invoke(app, ["status", "P", "--port", "3"])
    assert "No such option: --port. It is an option of: annotator serve --port, " in done.stderr
    assert "option of" not in CliRunner().invoke(app, ["status", "P", "--nothing-like-that"]).stderr
    assert "annotator classes merge --into." in CliRunner().invoke(app, ["classes", "P", "--into", "x"]).stderr

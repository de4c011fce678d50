"""The command group `annotator bench`, with options and error handling that its commands share."""

import signal
import sys
from collections.abc import Callable

import typer

from annotator.errors import AnnotatorError, combine_problems

commands = typer.Typer(
    help="Benchmarks: measure speed and quality on this machine.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@commands.callback()
def stop_on_signals() -> None:
    """Turn SIGTERM and SIGHUP into an exit, which also ends child processes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if hangup := getattr(signal, "SIGHUP", None):  # a closed terminal; Windows has no such signal
        signal.signal(hangup, lambda *_: sys.exit(129))


def split_names(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def parse_numbers(text: str, option: str = "--share") -> tuple[float, ...]:
    """Return the numbers between the commas of the option value `text`. Raises AnnotatorError that names the option."""
    wrong = []
    values = []
    for word in split_names(text):
        try:
            values.append(float(word))
        except ValueError:
            wrong.append(f"{word!r} is not a number")
    if wrong:
        raise combine_problems(
            f"{option} takes numbers with commas between them, such as 0.05,0.2,1.0, not {text!r}:", wrong
        )
    return tuple(values)


def run_benchmark(call: Callable[..., dict], *arguments: object, **options: object) -> dict:
    """Call a benchmark and return its result. Its ValueError or OSError is raised as AnnotatorError."""
    try:
        return call(*arguments, **options)
    except (ValueError, OSError) as error:
        raise AnnotatorError(str(error)) from error

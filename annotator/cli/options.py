"""Arguments and options that several commands share, so that they behave alike."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

from annotator.errors import AnnotatorError

if TYPE_CHECKING:  # the formats would delay every command
    from annotator.exchange.reading.reading_options import Interpretation, ReadingOptions

ProjectArgument = Annotated[Path, typer.Argument(help="The project folder.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]
AnnotatorOption = Annotated[str | None, typer.Option("--annotator", help="Who does it [default: your login name].")]
TaggerUrls = Annotated[
    list[str] | None,
    typer.Option(
        "--tagger-url",
        metavar="URL",
        help="Allowed server for Settings > Tagger, or VARIABLE=URL with its key. May be repeated.",
    ),
]
MethodName = Annotated[
    str | None, typer.Option("--method", metavar="NAME", help="Training method; annotator methods lists them.")
]


class Commas(StrEnum):
    """Values of --commas: split a class name with commas into several classes, or keep it as one."""

    SPLIT = "split"
    KEEP = "keep"


CommasOption = Annotated[
    Commas | None,
    typer.Option(
        "--commas", help="What the new class 'fox, deer' is: two classes (split) or one (keep).", show_default=False
    ),
]


class DefaultListGroup(TyperGroup):
    """A command group whose default command is `list`, as in `annotator classes PROJECT`."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["list", *args]
        return super().parse_args(ctx, args)


def refuse_combined_options(
    context: typer.Context, *alternatives: str, why: str = "These options exclude each other"
) -> None:
    """Refuse a command line with options of which one would be ignored.

    Args:
        alternatives: Parameter names of the command, separated by spaces. Those of one text may be combined.
        why: Beginning of the error.

    Raises:
        AnnotatorError: Options of several alternatives were given.
    """
    parameters = {parameter.name: parameter for parameter in context.command.params}
    given = [
        [parameters[name] for name in names.split() if _is_given(context, parameters[name].name)]
        for names in alternatives
    ]
    if sum(map(bool, given)) > 1:
        named = [_get_flag(parameter, context) for some in given for parameter in some]
        raise AnnotatorError(f"{why}: {' or '.join(named)}. Give only one.")


def _is_given(context: typer.Context, name: str | None) -> bool:
    source = context.get_parameter_source(name or "")
    return source is not None and source.name == "COMMANDLINE"


def _get_flag(parameter: Any, context: typer.Context) -> str:
    """Return how a parameter is given: --draw, --no-present or FILE."""
    if parameter.param_type_name == "argument":
        return parameter.metavar or parameter.name.upper()
    is_off = context.params.get(parameter.name) is False and parameter.secondary_opts
    return (parameter.secondary_opts if is_off else parameter.opts)[0]


def format_examples(*lines: str) -> str:
    """Return the end of a help text: the example commands, one per line."""
    return "Examples:\n\n\b\n" + "\n".join(f"  {line}" for line in lines)


READING_PANEL = "What the source means (recognised, and shown before anything is stored)"


def _build_option(help_: str, metavar: str = "NAME", *names: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help_, rich_help_panel=READING_PANEL)


LabelsOption = Annotated[
    str | None,
    _build_option("File of a folder with its labels; folders: their names are classes; none: images only.", "FILE"),
]
ImageColumn = Annotated[str | None, _build_option("Column that names the image.")]
FolderColumn = Annotated[str | None, _build_option("Column with the image's folder; none: no column has it.")]
LabelColumn = Annotated[
    str | None, _build_option("Columns that name the present classes, with commas; none: facts only.")
]
ClassColumns = Annotated[
    str | None, _build_option("Columns or keywords that are classes, with commas; none: facts only.")
]
Separator = Annotated[str | None, _build_option("Between the labels of a cell; none: a cell is one label.", "TEXT")]
PresentWords = Annotated[str | None, _build_option("Further words for present, with commas.", "WORDS")]
AbsentWords = Annotated[str | None, _build_option("Further words for absent.", "WORDS")]
UnsureWords = Annotated[str | None, _build_option("Further words for unsure.", "WORDS")]
UnknownWords = Annotated[str | None, _build_option("Further words for an unknown answer.", "WORDS")]
AcceptNames = Annotated[
    str | None, _build_option("Class names that look like numbers, dates, paths or decisions; all: every one.", "NAMES")
]
EmptyLabel = Annotated[
    str | None, _build_option("Labels that mean that no class is there; none: they are classes.", "WORDS")
]
Numbers = Annotated[
    str | None,
    _build_option("Whole numbers are: counts, present-counts (0 is unknown), ids of classes, or facts.", "KIND"),
]
ScoreColumn = Annotated[str | None, _build_option("Column with a model's score; none: its rows are answers of people.")]
KeptRows = Annotated[
    str | None, _build_option("Rows that are answers, as COLUMN=WORDS or COLUMN!=WORDS; none: all of them.", "RULE")
]
EventColumn = Annotated[str | None, _build_option("Column that names the event of which a row speaks.")]
Match = Annotated[str | None, _build_option("How far names of images may differ: name, tail, stem, case, url, file.")]
ReadingFile = Annotated[Path | None, _build_option("Take these options from a file that --save-reading wrote.", "FILE")]
SaveReading = Annotated[Path | None, _build_option("Write how the source is read, for the next of its kind.", "FILE")]


_PARAMETER_BY_FIELD = {"label_columns": "label_column", "accepted_names": "accept_names", "kept_rows": "rows"}
"""Fields whose parameter has another name than theirs."""


def build_reading(options: Mapping[str, Any]) -> "ReadingOptions":
    """Return how to interpret a source, from command options (arguments by name), else from the --reading file.

    Raises AnnotatorError for an unreadable file, or with a list of all invalid options.
    """
    from annotator.exchange.reading.reading_file import check_reading, load_reading, parse_option
    from annotator.exchange.reading.reading_options import ReadingOptions

    start = load_reading(options["reading"]) if options["reading"] else ReadingOptions()
    given = {
        field.name: parse_option(field.name, value)
        for field in fields(ReadingOptions)
        if (value := options.get(_PARAMETER_BY_FIELD.get(field.name, field.name))) is not None
    }
    return check_reading(replace(start, **given))


def format_options(decided: "Sequence[Interpretation]", reading: "ReadingOptions") -> str:
    """Format the command-line options that repeat this interpretation of a source."""
    from annotator.exchange.reading.reading_file import format_reading_options

    return " ".join(shlex.quote(word) for word in format_reading_options(decided, reading))

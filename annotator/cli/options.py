"""Arguments and options that several commands share, so that they read alike."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

if TYPE_CHECKING:  # the formats would delay every command
    from annotator.exchange.reading.reading import Decided, Reading

Project = Annotated[Path, typer.Argument(help="The project folder.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]
By = Annotated[str | None, typer.Option("--annotator", help="Who does it [default: your login name].")]
MethodName = Annotated[
    str | None, typer.Option("--method", metavar="NAME", help="Training method; annotator methods lists them.")
]


class Commas(StrEnum):
    """Values of --commas: a name with commas is split into several classes, or stays one."""

    SPLIT = "split"
    KEEP = "keep"


TakenApart = Annotated[
    Commas | None,
    typer.Option(
        "--commas", help="What the new class 'fox, deer' is: two classes (split) or one (keep).", show_default=False
    ),
]


class ListsByDefault(TyperGroup):
    """`annotator classes PROJECT` is `annotator classes list PROJECT`."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["list", *args]
        return super().parse_args(ctx, args)


def examples(*lines: str) -> str:
    """Return the end of a help text with these examples, each on a line of its own."""
    return "Examples:\n\n\b\n" + "\n".join(f"  {line}" for line in lines)


PANEL = "What the source means (recognised, and shown before anything is stored)"


def _option(help_: str, metavar: str = "NAME", *names: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help_, rich_help_panel=PANEL)


LabelsOption = Annotated[
    str | None,
    _option("File of a folder with its labels; folders: their names are classes; none: images only.", "FILE"),
]
ImageColumn = Annotated[str | None, _option("Column that names the image.")]
FolderColumn = Annotated[str | None, _option("Column with the image's folder; none: no column has it.")]
LabelColumn = Annotated[str | None, _option("Columns that name the present classes, with commas; none: facts only.")]
ClassColumns = Annotated[str | None, _option("Columns that are classes, with commas; none: facts only.")]
Separator = Annotated[str | None, _option("Between the labels of a cell; none: a cell is one label.", "TEXT")]
PresentWords = Annotated[str | None, _option("Further words for present, with commas.", "WORDS")]
AbsentWords = Annotated[str | None, _option("Further words for absent.", "WORDS")]
UnsureWords = Annotated[str | None, _option("Further words for unsure.", "WORDS")]
UnknownWords = Annotated[str | None, _option("Further words for an unknown answer.", "WORDS")]
EmptyLabel = Annotated[str | None, _option("Labels that mean that no class is there; none: they are classes.", "WORDS")]
Numbers = Annotated[
    str | None, _option("Whole numbers are: counts, present-counts (0 is unknown), ids of classes, or facts.", "KIND")
]
ScoreColumn = Annotated[str | None, _option("Column with a model's score; none: its rows are answers of people.")]
EventColumn = Annotated[str | None, _option("Column that names the event of which a row speaks.")]
Match = Annotated[str | None, _option("How far names of images may differ: name, tail, stem, case, url, file.")]
ReadingFile = Annotated[Path | None, _option("Take these options from a file that --save-reading wrote.", "FILE")]
SaveReading = Annotated[Path | None, _option("Write how the source is read, for the next of its kind.", "FILE")]


def reading_of(options: Mapping[str, Any]) -> "Reading":
    """Return the reading that the options of a command give; those of a file count where no option is given.

    Args:
        options: The arguments of the command by name.

    Raises:
        AnnotatorError: The file cannot be read, or an option has a value that it cannot have; lists all.
    """
    from annotator.exchange.reading.reading import Reading
    from annotator.exchange.reading.saved import checked, load, parsed

    start = load(options["reading"]) if options["reading"] else Reading()
    given = {
        field.name: parsed(field.name, value)
        for field in fields(Reading)
        if (value := options.get("label_column" if field.name == "label_columns" else field.name)) is not None
    }
    return checked(replace(start, **given))


def options_of(decided: "Sequence[Decided]", reading: "Reading") -> str:
    """Return the options that repeat a reading, as a person types them."""
    from annotator.exchange.reading.saved import as_options

    return " ".join(shlex.quote(word) for word in as_options(decided, reading))

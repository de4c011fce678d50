"""The options that say what a source means, shared by the commands that read one."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # the formats would delay every command
    from annotator.exchange.reading.reading import Decided, Reading

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
Match = Annotated[str | None, _option("How far names of images may differ from theirs: name, tail, stem, case, url.")]
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

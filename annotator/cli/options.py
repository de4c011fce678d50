"""Arguments and options that several commands share, so that they read alike."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

Project = Annotated[Path, typer.Argument(help="The project folder.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]
By = Annotated[str | None, typer.Option("--annotator", help="Who does it [default: your login name].")]
MethodName = Annotated[
    str | None, typer.Option("--method", metavar="NAME", help="Training method; annotator methods lists them.")
]


class Commas(StrEnum):
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
    """The end of a help text, each line as it stands."""
    return "Examples:\n\n\b\n" + "\n".join(f"  {line}" for line in lines)

"""The command line: parse, call one function, print. Each file holds one kind of command.

Commands share options.py and printing.py. Only those that train, measure or describe a method load torch. Start
with project.py.
"""

from typing import Annotated

import typer

from annotator.cli import (
    accept,
    adapt,
    agreement,
    assign,
    backbones,
    backup,
    certify,
    classes,
    classifier,
    doctor,
    events,
    export,
    home,
    import_,
    members,
    names,
    people,
    predictions,
    project,
    relations,
    show,
    tag,
    work,
)
from annotator.cli.bench import bench_inputs, finish, labels, methods
from annotator.cli.option_hints import OptionHintGroup

app = typer.Typer(
    name="annotator",
    cls=OptionHintGroup,
    help="Turn a folder of images into a complete multi-label data set. Without a command: opens the start page.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from annotator import __version__

        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        home.home()


for module in (
    *(project, import_, work, adapt, backbones, show, export, classifier, predictions, tag, names, certify, accept),
    *(events, relations, agreement, people, backup, doctor, home),
):
    app.add_typer(module.commands)
app.add_typer(classes.commands, name="classes")
app.add_typer(predictions.tokens, name="tokens")
app.add_typer(members.commands, name="members")
app.add_typer(assign.commands, name="assign")
app.add_typer(import_.imports, name="imports")
bench_inputs.commands.add_typer(labels.commands)
bench_inputs.commands.add_typer(methods.commands)
bench_inputs.commands.add_typer(finish.commands)
app.add_typer(bench_inputs.commands, name="bench")

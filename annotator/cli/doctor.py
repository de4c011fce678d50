"""The command that checks a project and recomputes everything derived from decisions."""

from dataclasses import asdict
from typing import Annotated

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, make_step_callback, print_result, show_progress

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples("annotator doctor birds", "annotator doctor birds --json", "annotator doctor birds --repair")
)
def doctor(
    project: ProjectArgument,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Derive again what follows from decisions, keeping a copy of project.db; delete damaged arrays that "
            "are made anew, and what killed processes left.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a project: database, labels against decisions, files, arrays, disk. Exit status 1 if something is wrong."""
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.store.upkeep.health import examine

    set_private_umask()
    with show_progress("Examining") as show:
        health = examine(project, repair=repair, progress=make_step_callback(show))

    def text() -> None:
        print(", ".join(f"{name} {version}" for name, version in health.versions.items()))
        for finding in health.repaired:
            print(f"Repaired: {escape_unprintable(finding.what)}")
        if health.kept:
            print(f"project.db as it was before lies in {health.kept}")
        for finding in health.findings:
            print(
                f"\n* {escape_unprintable(finding.what, chr(10))}\n  Why: {finding.why}\n  What to do: {finding.todo}"
            )
        if not health.findings:
            print("Nothing is wrong." if not health.repaired else "Nothing else is wrong.")

    print_result(asdict(health) | {"kept": str(health.kept) if health.kept else None}, as_json, text)
    if health.findings:
        raise typer.Exit(1)

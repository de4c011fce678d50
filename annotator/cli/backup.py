"""The commands that back up and restore a project."""

from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, make_step_callback, print_result, show_progress
from annotator.humanize import format_count

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples(
        "annotator backup birds /backups/birds",
        "annotator backup birds /backups/birds   (again: stores only what changed)",
        "annotator backup birds /backups/birds --keep 14",
    )
)
def backup(
    project: ProjectArgument,
    folder: Annotated[Path, typer.Argument(help="Folder of this project's backups.", show_default=False)],
    keep: Annotated[
        int | None, typer.Option(help="Afterwards remove all but so many of the newest backups.", min=1)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Back up a project while people work: decisions, and all files that cannot be computed again."""
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.store.upkeep.backup import create_backup, prune

    set_private_umask()
    with show_progress("Backing up") as show:
        done = create_backup(project, folder, make_step_callback(show))
    pruned = prune(folder, keep) if keep else None
    facts = {name: getattr(done, name) for name in ("files", "bytes", "new_files", "new_bytes", "left_out")}
    facts["removed"] = pruned.backups if pruned else 0

    def text() -> None:
        print(
            f"Backup {done.manifest.stem} in {escape_unprintable(str(folder))}: {format_count(done.files, 'file')} "
            f"with {done.bytes:,} bytes, of which {format_count(done.new_files, 'file')} with {done.new_bytes:,} bytes "
            "are new."
        )
        print("Not in it:")
        print("  images outside of the project folder: back them up yourself")
        for name, how in done.left_out.items():
            print(f"  {name}: {how}")
        if pruned and pruned.backups:
            print(
                f"Removed: {format_count(pruned.backups, 'older backup')}, with {pruned.bytes:,} bytes that only they "
                "had."
            )

    print_result({"backup": done.manifest.stem, **facts}, as_json, text)


@commands.command(
    epilog=format_examples(
        "annotator restore /backups/birds birds-again",
        "annotator restore /backups/birds birds-again --backup 20260131-180000-000000000",
    )
)
def restore(
    folder: Annotated[Path, typer.Argument(help="Folder of backups.", show_default=False)],
    project: Annotated[Path, typer.Argument(help="Folder of the new project.", show_default=False)],
    name: Annotated[str, typer.Option("--backup", metavar="NAME", help="Which one [default: the newest].")] = "",
) -> None:
    """Restore a backup as a new project, all or nothing."""
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.store.upkeep.restoring import restore as run

    set_private_umask()
    with show_progress("Restoring") as show:
        restored = run(folder, project, name, make_step_callback(show))
    print(
        f"{escape_unprintable(str(project))}: {format_count(restored.files, 'file')} of backup {restored.name} "
        "restored and checked."
    )
    print(
        f"Next: annotator serve {escape_unprintable(str(project))}   (its worker analyzes the images again and trains)"
    )

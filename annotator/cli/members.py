"""The commands for the members of a shared project: roles, invitation links, the log of changes."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.options import AnnotatorOption, AsJson, DefaultListGroup, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, print_result, print_table
from annotator.humanize import format_local_minute
from annotator.roles import Role
from annotator.settings import get_login_name

MemberName = Annotated[str, typer.Argument(help="Name of the member.", show_default=False)]

commands = typer.Typer(
    cls=DefaultListGroup,
    rich_markup_mode=None,
    help="List the members of a project, add them, and change what they may do.",
    epilog=format_examples("annotator members birds", "annotator members add birds Ann --role annotator"),
)


@commands.command("list", epilog=format_examples("annotator members list birds", "annotator members birds --json"))
def list_members(project: ProjectArgument, as_json: AsJson = False) -> None:
    """List the members, their roles, and their last sign-in."""
    from annotator.store.database.database import Database
    from annotator.store.people import members

    known = members.load_members(Database(project))

    def text() -> None:
        if known:
            rows = [
                (
                    escape_unprintable(member.name),
                    member.role.value,
                    escape_unprintable(member.email),
                    "has a link" if member.has_link else "",
                    format_local_minute(member.signed_in_at),
                )
                for member in known
            ]
            print_table(("member", "role", "e-mail", "", "signed in"), rows)
        else:
            print("There are no members yet. annotator serve PROJECT --auth invitation makes you the owner.")

    print_result([asdict(member) for member in known], as_json, text)


@commands.command(
    epilog=format_examples(
        "annotator members add birds Ann",
        "annotator members add birds Ben --role reviewer --email ben@example.org",
    )
)
def add(
    project: ProjectArgument,
    name: MemberName,
    role: Annotated[Role, typer.Option(help="What they may do.")] = Role.ANNOTATOR,
    email: Annotated[str, typer.Option(help="Address by which the login provider knows them.")] = "",
    by: AnnotatorOption = None,
) -> None:
    """Add a member. For an invitation link: annotator members link PROJECT NAME."""
    from annotator.store.database.database import Database
    from annotator.store.people import members

    member = members.add(Database(project), name, role, by or get_login_name(), email)
    print(f"{escape_unprintable(member.name)} is a member now: {member.role.value}.")


@commands.command(
    epilog=format_examples("annotator members role birds Ann reviewer", "annotator members role birds Ann none")
)
def role(
    project: ProjectArgument,
    name: MemberName,
    role: Annotated[Role, typer.Argument(help="What they may do; none ends their sessions.", show_default=False)],
    by: AnnotatorOption = None,
) -> None:
    """Change the role of a member, effective at once."""
    from annotator.store.database.database import Database
    from annotator.store.people import members

    member = members.set_role(Database(project), name, role, by or get_login_name())
    print(f"{escape_unprintable(member.name)}: {member.role.value}.")


@commands.command(epilog=format_examples('annotator members rename birds root "Ann Lee"'))
def rename(
    project: ProjectArgument,
    name: MemberName,
    new: Annotated[str, typer.Argument(help="Their new name.", show_default=False)],
    by: AnnotatorOption = None,
) -> None:
    """Rename a member. Labels stay with the member. Logs and earlier exports keep the old name."""
    from annotator.store.database.database import Database
    from annotator.store.people import renaming

    member = renaming.rename(Database(project), name, new, by or get_login_name())
    print(f"{escape_unprintable(name)} is called {escape_unprintable(member.name)} now.")


@commands.command(epilog=format_examples("annotator members link birds Ann"))
def link(project: ProjectArgument, name: MemberName, by: AnnotatorOption = None) -> None:
    """Print a new invitation link of a member, which replaces the earlier one."""
    from annotator.store.database.database import Database
    from annotator.store.people import members
    from annotator.ui.access.access_keys import build_invitation_url

    db = Database(project)
    print(build_invitation_url(db, members.create_link(db, name, by or get_login_name())))
    typer.echo(f"This is shown only now. Whoever opens it is signed in as {escape_unprintable(name)}.", err=True)


@commands.command(epilog=format_examples("annotator members sign-out birds Ann"))
def sign_out(project: ProjectArgument, name: MemberName, by: AnnotatorOption = None) -> None:
    """End all sessions of a member, and disable their invitation link."""
    from annotator.store.database.database import Database
    from annotator.store.people import members

    members.sign_out_everywhere(Database(project), name, by or get_login_name())
    print(f"{escape_unprintable(name)} is signed out everywhere.")


@commands.command(epilog=format_examples("annotator members newcomers birds guest"))
def newcomers(
    project: ProjectArgument,
    role: Annotated[Role, typer.Argument(help="What they may do; none: they wait.", show_default=False)],
    by: AnnotatorOption = None,
) -> None:
    """Set the role of people who sign in with the login provider and are not members yet."""
    from annotator.store.database.database import Database
    from annotator.store.people import members

    members.set_newcomer_role(Database(project), role, by or get_login_name())
    print(f"Newcomers have the role {role.value} from now on.")


@commands.command(epilog=format_examples("annotator members log birds", "annotator members log birds --csv log.csv"))
def log(
    project: ProjectArgument,
    to: Annotated[Path | None, typer.Option("--csv", help="Write all of it to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show sign-ins and changes of members with their authors, newest first."""
    from annotator.exchange.files.csv_cells import CsvWriter
    from annotator.exchange.files.text_output import open_text_output
    from annotator.store.database.database import Database
    from annotator.store.people import members

    entries = members.load_log(Database(project))
    if to is not None:
        with open_text_output(to, overwrite=True) as file:
            rows = CsvWriter(file)
            rows.write_row(["id", "at", "by", "what", "member", "detail"])
            for entry in entries:
                rows.write_row(asdict(entry).values())
        typer.echo(f"{to}: {len(entries):,} entries.", err=True)
        return

    def text() -> None:
        if not entries:
            print("Nobody has signed in yet, and nothing was changed.")
            return
        rows = [
            (
                format_local_minute(entry.at),
                escape_unprintable(entry.by),
                entry.what,
                escape_unprintable(entry.member),
                escape_unprintable(entry.detail),
            )
            for entry in entries
        ]
        print_table(("when", "by", "what", "member", "detail"), rows)

    print_result([asdict(entry) for entry in entries], as_json, text)

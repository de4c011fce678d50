"""The commands for the members of a project that several people label: roles, invitation links, the log."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.options import AsJson, By, ListsByDefault, Project, examples
from annotator.cli.printing import print_result, print_table, printable
from annotator.roles import Role
from annotator.settings import login

Name = Annotated[str, typer.Argument(help="Name of the member.", show_default=False)]

commands = typer.Typer(
    cls=ListsByDefault,
    rich_markup_mode=None,
    help="List the members of a project, add them, and change what they may do.",
    epilog=examples("annotator members birds", "annotator members add birds Ann --role annotator"),
)


@commands.command("list", epilog=examples("annotator members list birds", "annotator members birds --json"))
def listed(project: Project, as_json: AsJson = False) -> None:
    """Show the members, their roles, and when they signed in last."""
    from annotator.store.database.database import Database
    from annotator.store.people import members

    known = members.members(Database(project))

    def text() -> None:
        if known:
            rows = [
                (
                    printable(member.name),
                    member.role.value,
                    printable(member.email),
                    "has a link" if member.has_link else "",
                    _minute(member.signed_in_at),
                )
                for member in known
            ]
            print_table(("member", "role", "e-mail", "", "signed in"), rows)
        else:
            print("There are no members yet. annotator serve PROJECT --auth invitation makes you the owner.")

    print_result([asdict(member) for member in known], as_json, text)


@commands.command(
    epilog=examples(
        "annotator members add birds Ann",
        "annotator members add birds Ben --role reviewer --email ben@example.org",
    )
)
def add(
    project: Project,
    name: Name,
    role: Annotated[Role, typer.Option(help="What they may do.")] = Role.ANNOTATOR,
    email: Annotated[str, typer.Option(help="Address by which the login provider knows them.")] = "",
    by: By = None,
) -> None:
    """Add a person. For an invitation link: annotator members link PROJECT NAME."""
    from annotator.store.database.database import Database
    from annotator.store.people import members

    member = members.add(Database(project), name, role, by or login(), email)
    print(f"{printable(member.name)} is a member now: {member.role.value}.")


@commands.command(epilog=examples("annotator members role birds Ann reviewer", "annotator members role birds Ann none"))
def role(
    project: Project,
    name: Name,
    role: Annotated[Role, typer.Argument(help="What they may do; none ends their sessions.", show_default=False)],
    by: By = None,
) -> None:
    """Give a member another role, at once."""
    from annotator.store.database.database import Database
    from annotator.store.people import members

    member = members.set_role(Database(project), name, role, by or login())
    print(f"{printable(member.name)}: {member.role.value}.")


@commands.command(epilog=examples('annotator members rename birds root "Ann Lee"'))
def rename(
    project: Project,
    name: Name,
    new: Annotated[str, typer.Argument(help="Their new name.", show_default=False)],
    by: By = None,
) -> None:
    """Rename a member. Their answers stay theirs; logs and earlier exports keep the old name."""
    from annotator.store.database.database import Database
    from annotator.store.people import renaming

    member = renaming.rename(Database(project), name, new, by or login())
    print(f"{printable(name)} is called {printable(member.name)} now.")


@commands.command(epilog=examples("annotator members link birds Ann"))
def link(project: Project, name: Name, by: By = None) -> None:
    """Print a new invitation link of a member; an earlier one is not accepted any more."""
    from annotator.store.database.database import Database
    from annotator.store.people import members
    from annotator.ui.access.access_keys import invitation

    db = Database(project)
    print(invitation(db, members.new_link(db, name, by or login())))
    typer.echo(f"This is shown only now. Whoever opens it is signed in as {printable(name)}.", err=True)


@commands.command(epilog=examples("annotator members sign-out birds Ann"))
def sign_out(project: Project, name: Name, by: By = None) -> None:
    """End all sessions of a member, and make their link useless."""
    from annotator.store.database.database import Database
    from annotator.store.people import members

    members.sign_out_everywhere(Database(project), name, by or login())
    print(f"{printable(name)} is signed out everywhere.")


@commands.command(epilog=examples("annotator members newcomers birds guest"))
def newcomers(
    project: Project,
    role: Annotated[Role, typer.Argument(help="What they may do; none: they wait.", show_default=False)],
    by: By = None,
) -> None:
    """Choose the role of whoever signs in at the login provider and is no member yet."""
    from annotator.store.database.database import Database
    from annotator.store.people import members

    members.set_newcomer_role(Database(project), role, by or login())
    print(f"Newcomers have the role {role.value} from now on.")


@commands.command(epilog=examples("annotator members log birds", "annotator members log birds --csv log.csv"))
def log(
    project: Project,
    to: Annotated[Path | None, typer.Option("--csv", help="Write all of it to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show who signed in, and who changed what about whom, newest first."""
    from annotator.exchange.files.text_cells import Rows
    from annotator.store.database.database import Database
    from annotator.store.people import members

    entries = members.log(Database(project))
    if to is not None:
        with to.open("w", newline="", encoding="utf-8") as file:
            rows = Rows(file)
            rows.row(["id", "at", "by", "what", "member", "detail"])
            for entry in entries:
                rows.row(asdict(entry).values())
        typer.echo(f"{to}: {len(entries):,} entries.", err=True)
        return

    def text() -> None:
        if not entries:
            print("Nobody has signed in yet, and nothing was changed.")
            return
        rows = [
            (_minute(entry.at), printable(entry.by), entry.what, printable(entry.member), printable(entry.detail))
            for entry in entries
        ]
        print_table(("when", "by", "what", "member", "detail"), rows)

    print_result([asdict(entry) for entry in entries], as_json, text)


def _minute(at: float | None) -> str:
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(at))

"""The commands that say who is asked what: fixed shares, answers of several people, known answers."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from annotator.cli.options import AsJson, ListsByDefault, Project, examples
from annotator.cli.printing import print_result, print_table, printable
from annotator.shares import counted, percent

Person = Annotated[str, typer.Argument(help="Name of the person.", show_default=False)]
List = Annotated[Path, typer.Argument(help="Text file with the name of an image in each line.", show_default=False)]

commands = typer.Typer(
    cls=ListsByDefault,
    rich_markup_mode=None,
    help="Choose who is asked what: fixed shares, images that several people answer, known answers.",
    epilog=examples("annotator assign birds", "annotator assign overlap birds --people 2 --share 10"),
)


@commands.command("list", epilog=examples("annotator assign list birds", "annotator assign birds --json"))
def listed(project: Project, as_json: AsJson = False) -> None:
    """Show what belongs to whom, what several people answer, and how people did on known answers."""
    from annotator.store.database.database import Database
    from annotator.store.labels import overlap as readings
    from annotator.store.people import assignment, known_answers

    db = Database(project)
    shares, chosen, known = assignment.shares(db), readings.overlap(db), known_answers.results(db)
    told: dict[str, Any] = {"shares": [asdict(share) for share in shares], "overlap": None}
    if chosen:
        told["overlap"] = asdict(chosen) | asdict(readings.readings(db))
    told["known"] = {"images": known_answers.count(db), "share": known_answers.share(db)}

    def text() -> None:
        if shares:
            rows = [
                (
                    str(share.id),
                    printable(share.annotator),
                    f"{share.kind} {printable(share.what)}".strip(),
                    f"{share.answered:,} of {share.images:,} complete" if share.kind != assignment.CLASS else "",
                )
                for share in shares
            ]
            print_table(("share", "person", "what", "images"), rows)
        else:
            print("Everybody works on one pool: nothing belongs to one person.")
        if chosen:
            done = readings.readings(db)
            print(
                f"\n{percent(chosen.share, digits=1)} of the images are answered by {chosen.people} people each, "
                f"blind to each other: {done.images - done.waiting:,} of {counted(done.images, 'image')} done, "
                f"{done.answers:,} answers so far."
            )
        if part := known_answers.share(db):
            asked = counted(known_answers.count(db), "image")
            print(f"\n{asked} with known answers: {percent(part, digits=1)} of what a person is asked.")
        if known:
            rows = [
                (
                    printable(one.annotator),
                    f"{one.images:,}",
                    f"{one.found:,} of {one.present:,}",
                    f"{one.rejected:,} of {one.absent:,}",
                )
                for one in known
            ]
            print()
            print_table(("person", "known images", "found what is there", "rejected what is not"), rows)

    print_result(told | {"answers_to_known": [asdict(one) for one in known]}, as_json, text)


@commands.command(
    epilog=examples("annotator assign folder birds Ann site-3", "annotator assign folder birds Ben site-4")
)
def folder(
    project: Project,
    person: Person,
    folder: Annotated[str, typer.Argument(help="Folder below the one that was added.", show_default=False)],
) -> None:
    """Make a folder of the images somebody's share, also what is added to it later."""
    from annotator.store.database.database import Database
    from annotator.store.people import assignment

    db = Database(project)
    _tell(db, assignment.give_folder(db, person, folder))


@commands.command(epilog=examples("annotator assign images birds Ann hard.txt"))
def images(project: Project, person: Person, file: List) -> None:
    """Make a list of images somebody's share."""
    from annotator.store.database.database import Database
    from annotator.store.people import assignment

    db = Database(project)
    _tell(db, assignment.give_images(db, person, file.stem, _lines(file)))


@commands.command("class", epilog=examples("annotator assign class birds Ann heron"))
def class_(
    project: Project,
    person: Person,
    name: Annotated[str, typer.Argument(help="Name of the class.", show_default=False)],
) -> None:
    """Make a class somebody's share: they are asked about their classes only, one at a time."""
    from annotator.store.classes import classes
    from annotator.store.database.database import Database
    from annotator.store.people import assignment

    db = Database(project)
    _tell(db, assignment.give_class(db, person, classes.find_class(db, name).id))


@commands.command(epilog=examples("annotator assign end birds 3"))
def end(project: Project, share: Annotated[int, typer.Argument(help="Its number.", show_default=False)]) -> None:
    """End a share. Its images or its class belong to everybody again."""
    from annotator.store.database.database import Database
    from annotator.store.people import assignment

    assignment.take_back(Database(project), share)
    print(f"Share {share} has ended.")


@commands.command(
    epilog=examples("annotator assign overlap birds --people 2 --share 10", "annotator assign overlap birds --people 1")
)
def overlap(
    project: Project,
    people: Annotated[int, typer.Option(help="People who answer each of these images; 1: no overlap.")] = 2,
    share: Annotated[float, typer.Option(help="Percent of the images, chosen at random.")] = 10.0,
) -> None:
    """Have a share of the images answered by several people, blind to each other."""
    from annotator.store.database.database import Database
    from annotator.store.labels import overlap as readings

    db = Database(project)
    readings.choose(db, people, share / 100)
    done = readings.readings(db)
    if not done.images:
        print("Every image is answered once.")
        return
    print(
        f"{counted(done.images, 'image')} will be answered by {people} people each, in Autopilot; "
        f"{done.waiting:,} of them wait. No other page asks about an image that waits."
    )


@commands.command(
    epilog=examples("annotator assign known birds known.txt --share 5", "annotator assign known birds --share 0")
)
def known(
    project: Project,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Text file with the name of a complete image in each line; without it only the share changes.",
            show_default=False,
        ),
    ] = None,
    share: Annotated[float, typer.Option(help="Percent of each person's actions; 0: none.")] = 5.0,
) -> None:
    """Mix in images whose answers are known, to see how well people answer."""
    from annotator.store.database.database import Database
    from annotator.store.people import known_answers

    db = Database(project)
    if file is not None:
        known_answers.choose(db, _lines(file), share / 100)
    else:
        known_answers.set_share(db, share / 100)
    asked = counted(known_answers.count(db), "image")
    print(f"{asked} with known answers: {100 * known_answers.share(db):g} % of what a person is asked in Autopilot.")


def _tell(db: Any, share_id: int) -> None:
    from annotator.store.people import assignment

    share = next(share for share in assignment.shares(db) if share.id == share_id)
    what = f"{share.kind} {share.what}".strip()
    images_ = "" if share.kind == assignment.CLASS else f", {counted(share.images, 'image')}"
    print(f"Share {share.id}: {printable(what)}{images_}, of {printable(share.annotator)}.")


def _lines(file: Path) -> list[str]:
    from annotator.exchange.files.text import read_text

    return read_text(file, "the list of images").splitlines()

"""The commands for assignments: fixed ones, images for several annotators, and reference images."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from annotator.cli.options import AsJson, DefaultListGroup, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, print_result, print_table
from annotator.humanize import format_count, format_percent

Person = Annotated[str, typer.Argument(help="Name of the person.", show_default=False)]
ImageListFile = Annotated[
    Path, typer.Argument(help="Text file with the name of an image in each line.", show_default=False)
]

commands = typer.Typer(
    cls=DefaultListGroup,
    rich_markup_mode=None,
    help="Choose who is asked what: fixed shares, images that several people answer, known answers.",
    epilog=format_examples("annotator assign birds", "annotator assign overlap birds --people 2 --share 10"),
)


@commands.command("list", epilog=format_examples("annotator assign list birds", "annotator assign birds --json"))
def list_assignments(project: ProjectArgument, as_json: AsJson = False) -> None:
    """Show the assignments, the images that several people answer, and how people did on reference images."""
    from annotator.store.database.database import Database
    from annotator.store.labels import image_overlap
    from annotator.store.people import assignment, reference_answers

    db = Database(project)
    shares, chosen, known = (
        assignment.load_assignments(db),
        image_overlap.load_overlap(db),
        reference_answers.load_results(db),
    )
    told: dict[str, Any] = {"shares": [asdict(share) for share in shares], "overlap": None}
    if chosen:
        told["overlap"] = asdict(chosen) | asdict(image_overlap.load_progress(db))
    told["known"] = {"images": reference_answers.count_images(db), "share": reference_answers.get_share(db)}

    def text() -> None:
        if shares:
            rows = [
                (
                    str(share.id),
                    escape_unprintable(share.annotator),
                    f"{share.kind} {escape_unprintable(share.what)}".strip(),
                    f"{share.answered:,} of {share.images:,} complete" if share.kind != assignment.CLASS else "",
                )
                for share in shares
            ]
            print_table(("share", "person", "what", "images"), rows)
        else:
            print("Everybody works on one pool: nothing belongs to one person.")
        if chosen:
            done = image_overlap.load_progress(db)
            print(
                f"\n{format_percent(chosen.share, digits=1)} of the images are answered by {chosen.people} people "
                f"each, blind to each other: {done.images - done.waiting:,} of {format_count(done.images, 'image')} "
                f"done, {done.answers:,} answers so far."
            )
        if part := reference_answers.get_share(db):
            asked = format_count(reference_answers.count_images(db), "image")
            print(f"\n{asked} with known answers: {format_percent(part, digits=1)} of what a person is asked.")
        if known:
            rows = [
                (
                    escape_unprintable(one.annotator),
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
    epilog=format_examples("annotator assign folder birds Ann site-3", "annotator assign folder birds Ben site-4")
)
def folder(
    project: ProjectArgument,
    person: Person,
    folder: Annotated[str, typer.Argument(help="Folder below the one that was added.", show_default=False)],
) -> None:
    """Assign the images of a folder to a person, including images added to it later."""
    from annotator.store.database.database import Database
    from annotator.store.people import assignment

    db = Database(project)
    _print_assignment(db, assignment.assign_folder(db, person, folder))


@commands.command(epilog=format_examples("annotator assign images birds Ann hard.txt"))
def images(project: ProjectArgument, person: Person, file: ImageListFile) -> None:
    """Assign a list of images to a person."""
    from annotator.store.database.database import Database
    from annotator.store.people import assignment

    db = Database(project)
    _print_assignment(db, assignment.assign_images(db, person, file.stem, _read_lines(file)))


@commands.command("class", epilog=format_examples("annotator assign class birds Ann heron"))
def class_(
    project: ProjectArgument,
    person: Person,
    name: Annotated[str, typer.Argument(help="Name of the class.", show_default=False)],
) -> None:
    """Assign a class to a person, who is then asked only about assigned classes, one at a time."""
    from annotator.store.classes import classes
    from annotator.store.database.database import Database
    from annotator.store.people import assignment

    db = Database(project)
    _print_assignment(db, assignment.assign_class(db, person, classes.find_class(db, name).id))


@commands.command(epilog=format_examples("annotator assign end birds 3"))
def end(
    project: ProjectArgument, share: Annotated[int, typer.Argument(help="Its number.", show_default=False)]
) -> None:
    """End an assignment. Its images or its class are open to all annotators again."""
    from annotator.store.database.database import Database
    from annotator.store.people import assignment

    assignment.remove_assignment(Database(project), share)
    print(f"Share {share} has ended.")


@commands.command(
    epilog=format_examples(
        "annotator assign overlap birds --people 2 --share 10", "annotator assign overlap birds --people 1"
    )
)
def overlap(
    project: ProjectArgument,
    people: Annotated[int, typer.Option(help="People who answer each of these images; 1: no overlap.")] = 2,
    share: Annotated[float, typer.Option(help="Percent of the images, chosen at random.")] = 10.0,
) -> None:
    """Have a random percentage of the images answered by several people, blind to each other."""
    from annotator.store.database.database import Database
    from annotator.store.labels import image_overlap

    db = Database(project)
    image_overlap.set_overlap(db, people, share / 100)
    done = image_overlap.load_progress(db)
    if not done.images:
        print("Every image is answered once.")
        return
    print(
        f"{format_count(done.images, 'image')} will be answered by {people} people each, in Autopilot; "
        f"{done.waiting:,} of them wait. No other page asks about an image that waits."
    )


@commands.command(
    epilog=format_examples("annotator assign known birds known.txt --share 5", "annotator assign known birds --share 0")
)
def known(
    project: ProjectArgument,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Text file with the name of a complete image in each line; without it only the share changes.",
            show_default=False,
        ),
    ] = None,
    share: Annotated[float, typer.Option(help="Percent of each person's actions; 0: none.")] = 5.0,
) -> None:
    """Mix in reference images, whose answers are known, to measure how well people answer."""
    from annotator.store.database.database import Database
    from annotator.store.people import reference_answers

    db = Database(project)
    if file is not None:
        reference_answers.choose_images(db, _read_lines(file), share / 100)
    else:
        reference_answers.set_share(db, share / 100)
    asked = format_count(reference_answers.count_images(db), "image")
    print(
        f"{asked} with known answers: {100 * reference_answers.get_share(db):g} % of what a person is asked in "
        "Autopilot."
    )


def _print_assignment(db: Any, share_id: int) -> None:
    from annotator.store.people import assignment

    share = next(share for share in assignment.load_assignments(db) if share.id == share_id)
    what = f"{share.kind} {share.what}".strip()
    images_ = "" if share.kind == assignment.CLASS else f", {format_count(share.images, 'image')}"
    print(f"Share {share.id}: {escape_unprintable(what)}{images_}, of {escape_unprintable(share.annotator)}.")


def _read_lines(file: Path) -> list[str]:
    from annotator.exchange.files.text_files import read_text

    return read_text(file, "the list of images").splitlines()

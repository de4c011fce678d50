"""The command that chooses which bands of images of many bands are shown."""

from typing import Annotated

import typer

from annotator.cli.options import Project, examples
from annotator.cli.printing import print_by_reason, printable, progress

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=examples(
        "annotator bands birds",
        "annotator bands birds 4,3,2",
        "annotator bands birds 8,4,3 --of 13",
    )
)
def bands(
    project: Project,
    shown: Annotated[
        str | None, typer.Argument(help="Three numbers of bands, from 1, for red, green, blue; or one, as grey.")
    ] = None,
    of: Annotated[
        int | None, typer.Option("--of", help="Only for images of exactly so many bands, whatever they say themselves.")
    ] = None,
) -> None:
    """Show which bands of images of many bands are displayed, or choose them, for people and the network alike.

    Images that name red, green and blue themselves need no choice. Images that waited for one are added; those that
    were shown by other bands are analyzed again. Labels stay.
    """
    from annotator.exchange.band_choice import choose_bands, chosen_in_words
    from annotator.store.database.database import Database
    from annotator.store.images.band_setting import bands_in_words, shown_bands
    from annotator.store.pictures.bands import parsed

    db = Database(project)
    if shown is None:
        for sentence in bands_in_words(shown_bands(db)):
            print(sentence)
        return
    three = parsed(shown)
    with progress("Reading images") as show:
        chosen = choose_bands(db, three, of, show)
    for sentence in chosen_in_words(chosen, three, of):
        print(printable(sentence))
    print_by_reason(chosen.bad, "skipped")

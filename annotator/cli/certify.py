"""The commands that say how good the labels are: the certificate, and the drawings it rests on."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from annotator.cli.options import AsJson, Project, examples

commands = typer.Typer(rich_markup_mode=None)


@commands.command(epilog=examples("annotator certificate birds", "annotator certificate birds --target 0.95 --json"))
def certificate(
    project: Project,
    target: Annotated[float, typer.Option(help="The recall that is asked for.", min=0.01, max=1.0)] = 0.98,
    as_json: AsJson = False,
) -> None:
    """Show how complete and how correct the labels are, with 95 % intervals, and what would make them surer."""
    from annotator.quality.certificate import certificate as certify
    from annotator.quality.evidence import counts, lasting, percents
    from annotator.store.database import Database

    found = certify(Database(project), target)
    if as_json:
        reached = {"target": target, "classes": found.reached(target), "sentence": found.sentence(target)}
        print(json.dumps(found.as_json() | {"reached": reached}))
        return
    titles = ("", "labeled", "recall", "precision", "missing", "audited", "to find 95 %")
    rows = [
        (
            one.name,
            f"{one.people + one.accepted:,}",
            *(brief(each(value)) for each, value in ((percents, one.recall), (percents, one.precision))),
            brief(counts(one.missing)),
            f"{one.audited:,}",
            lasting(one.seconds),
        )
        for one in [*found.classes, found.overall]
    ]
    widths = [max(len(row[place]) for row in (titles, *rows)) for place in range(len(titles))]
    for name, *others in (titles, *rows):
        told = [f"{text:>{width}}" for text, width in zip(others, widths[1:], strict=True)]
        print("  ".join([f"{name:<{widths[0]}}", *told]))
    print(f"\n{found.sentence(target)}")
    for sentence in found.lacks:
        print(f"  {sentence}")


@commands.command(epilog=examples("annotator audit birds", "annotator audit birds --cells 500"))
def audit(
    project: Project,
    cells: Annotated[int | None, typer.Option(help="How many [default: 30 a class, 200 at least].", min=1)] = None,
    as_json: AsJson = False,
) -> None:
    """Draw cells at random that people then answer blind: what the certificate rests on."""
    from annotator.quality.audit import draw
    from annotator.store.database import Database

    drawn = draw(Database(project), cells)
    if as_json:
        print(json.dumps(asdict(drawn)))
        return
    print(f"Audit {drawn.id}: {drawn.cells:,} cells drawn.")
    print("Answer them in the audit grid on the Grid page, then: " + f"annotator certificate {project}")


def brief(told: str) -> str:
    """A figure as the table has room for it: without the reason why it was not measured, which stands below."""
    return told.partition(" (")[0] if told.startswith("not measured") else told

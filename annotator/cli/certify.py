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
    from annotator.engine.certificate import certificate as certify
    from annotator.store.database import Database

    found = certify(Database(project), target)
    if as_json:
        reached = {"target": target, "classes": found.reached(target), "sentence": found.sentence(target)}
        print(json.dumps(asdict(found) | {"reached": reached}))
        return
    width = max(len(one.name) for one in [*found.classes, found.overall])
    print(f"{'':<{width}}  labeled  {'recall':^22}  {'precision':^22}  {'missing':^19}  audited     to find 95 %")
    for one in [*found.classes, found.overall]:
        recall, precision = (ranged(each, 3) for each in (one.recall, one.precision))
        print(
            f"{one.name:<{width}}  {one.people + one.accepted:>7,}  {recall:>22}  {precision:>22}  "
            f"{ranged(one.missing, 0):>19}  {one.audited:>7,}  {lasting(one.seconds):>15}"
        )
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
    from annotator.engine.audit import draw
    from annotator.store.database import Database

    drawn = draw(Database(project), cells)
    if as_json:
        print(json.dumps(asdict(drawn)))
        return
    print(f"Audit {drawn.id}: {drawn.cells:,} cells drawn.")
    print("Answer them in the blind check on the Grid page, then: " + f"annotator certificate {project}")


def ranged(value, digits: int) -> str:
    """An interval as a table shows it: the estimate, and the two ends behind it."""
    estimate = "-" if value.estimate is None else f"{value.estimate:,.{digits}f}"
    return f"{estimate} ({value.low:,.{digits}f}-{value.high:,.{digits}f})"


def lasting(seconds: float | None) -> str:
    """A time as people say it."""
    if seconds is None:
        return "-"
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )

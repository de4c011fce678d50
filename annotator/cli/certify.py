"""The commands that measure label quality: the quality report, and audits (random samples answered blind)."""

from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples, refuse_combined_options
from annotator.cli.printing import print_result, print_table
from annotator.humanize import format_count

if TYPE_CHECKING:
    from annotator.store.database.database import Database

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples(
        "annotator certificate birds",
        "annotator certificate birds --target 0.9 --json",
        "annotator certificate birds --by place",
    )
)
def certificate(
    context: typer.Context,
    project: ProjectArgument,
    target: Annotated[float, typer.Option(help="Target recall.", min=0.01, max=1.0)] = 0.95,
    by: Annotated[
        str | None,
        typer.Option(
            help="Show instead the images of each group of a fact: place, camera, captured, hour, size, brightness, "
            "sharpness, or an imported column."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how complete and how correct the labels are, with 95 % intervals, and how to improve confidence."""
    from annotator.quality.certificate_records import describe_mistake_allowance
    from annotator.quality.certification import compute_certificate
    from annotator.quality.evidence import IF_ANSWERS_ARE_RIGHT, describe_count, describe_share, format_search_time
    from annotator.store.database.database import Database

    refuse_combined_options(context, "target", "by")
    if by is not None:
        _print_by_fact(Database(project), by, as_json)
        return
    certified = compute_certificate(Database(project), target)
    reached = {
        "target": target,
        "classes": certified.find_reached_classes(target),
        "assuming": certified.allowance,
        "sentence": certified.sentence(target),
    }

    def text() -> None:
        # A column without any figure would say nothing.
        of_events = ["recall of events"] if certified.events is not None else []
        titles = (
            "",
            "labeled",
            f"recall {IF_ANSWERS_ARE_RIGHT}",
            f"recall {certified.allowance}",
            *of_events,
            "precision",
            "missing",
            "audited",
            "time to find 95 %",
        )
        rows = [
            (
                row.name,
                f"{row.people + row.accepted:,}",
                shorten_figure(describe_share(row.recall)),
                shorten_figure(describe_share(row.recall_allowing)),
                *([shorten_figure(describe_share(row.events.recall))] if row.events else []),
                shorten_figure(describe_share(row.precision)),
                shorten_figure(describe_count(row.missing)),
                f"{row.audit_answers:,}",
                format_search_time(row.seconds),
            )
            for row in [*certified.classes, certified.overall]
        ]
        print_table(titles, rows)
        print(f"\n{certified.sentence(target)}.")
        if words := certified.in_events():
            print(f"  {words}")
        print(f"  {describe_mistake_allowance(certified)}")
        if not certified.overall.unknown or certified.overall.asked_again.total:
            print(f"  {certified.overall.says}")
        for sentence in (*certified.ruled_out.values(), *certified.lacks):
            print(f"  {sentence}")

    print_result(certified.as_json() | {"reached": reached}, as_json, text)


def _print_by_fact(db: "Database", name: str, as_json: bool) -> None:
    from annotator.quality.certificate_groups import compute_certificate_by
    from annotator.quality.evidence import IF_ANSWERS_ARE_RIGHT, describe_count, describe_share

    certified = compute_certificate_by(db, name)

    def text() -> None:
        titles = (
            certified.label,
            "images",
            "audited",
            "labeled",
            f"recall {IF_ANSWERS_ARE_RIGHT}",
            f"recall {certified.allowance}",
            "precision",
            "missing",
        )
        rows = [
            (
                group.name,
                f"{group.images:,}",
                f"{group.audited_images:,}",
                f"{group.people + group.accepted:,}",
                describe_share(group.recall),
                shorten_figure(describe_share(group.recall_allowing)),
                shorten_figure(describe_share(group.precision)),
                describe_count(group.missing),
            )
            for group in certified.groups
        ]
        print_table(titles, rows)
        print()
        for sentence in certified.format_sentences():
            print(f"  {sentence}")

    print_result(certified.as_json(), as_json, text)


@commands.command(
    epilog=format_examples(
        "annotator audit birds",
        "annotator audit birds --cells 500",
        "annotator audit birds --people 2",
        "annotator audit traps --events",
    )
)
def audit(
    project: ProjectArgument,
    cells: Annotated[int | None, typer.Option(help="Sample size [default: 30 per class, at least 200].", min=1)] = None,
    people: Annotated[int, typer.Option(help="People who answer each pair, blind to each other.", min=1, max=9)] = 1,
    events: Annotated[
        bool, typer.Option("--events", help="Draw events: --cells of them, all of whose images are asked.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start an audit: a random sample that people answer without predictions, on which the quality report rests."""
    from annotator.quality.audit_sampling import draw_audit
    from annotator.store.database.database import Database

    sample = draw_audit(Database(project), cells, people=people, by_event=events)

    def text() -> None:
        each = f" by {format_count(people, 'person', 'people')} each" if people > 1 else ""
        print(f"Audit {sample.id}: {format_count(sample.cells, 'pair')} to check{each}.")
        print(f"Answer in the audit grid on the Grid page, then: annotator certificate {project}")

    print_result(sample.as_json(), as_json, text)


def shorten_figure(figure: str) -> str:
    """Return a figure for a table cell, without the reason why it was not measured (printed below the table)."""
    return figure.partition(" (")[0] if figure.startswith("not measured") else figure

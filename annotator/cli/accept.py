"""The command for auto-accept: turn it on, list or undo acceptances, mark a class absent everywhere."""

from dataclasses import asdict
from typing import Annotated

import typer

from annotator.cli.options import (
    AnnotatorOption,
    AsJson,
    ProjectArgument,
    format_examples,
    refuse_combined_options,
)
from annotator.cli.printing import escape_unprintable, print_result
from annotator.humanize import format_count
from annotator.settings import get_login_name

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples(
        "annotator accept birds --draw",
        "annotator accept birds --precision 0.99",
        "annotator accept birds --absent --together",
        "annotator accept birds --list",
        "annotator accept birds --rule-out heron",
        "annotator accept birds --undo a1b2c3d4",
    )
)
def accept(
    context: typer.Context,
    project: ProjectArgument,
    precision: Annotated[float, typer.Option(help="Share of the accepted answers that must be right.")] = 0.99,
    present: Annotated[bool, typer.Option("--present/--no-present", help="Accept confident present answers.")] = True,
    absent: Annotated[bool, typer.Option("--absent", help="Accept confident absent answers, too.")] = False,
    together: Annotated[
        bool,
        typer.Option("--together", help="One guarantee for all classes: needs fewer audit answers."),
    ] = False,
    draw: Annotated[
        bool, typer.Option("--draw", help="Start the check: sample the pairs to audit, accept nothing yet.")
    ] = False,
    off: Annotated[bool, typer.Option("--off", help="Undo all accepted answers, and turn auto-accept off.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Only list what is accepted, and what was.")] = False,
    rule_out: Annotated[
        str | None,
        typer.Option(
            "--rule-out", metavar="CLASS", help="Take a class as absent of which 96 or more random images showed none."
        ),
    ] = None,
    by: AnnotatorOption = None,
    undo: Annotated[
        str | None,
        typer.Option(metavar="BATCH", help="Undo one batch; one of the model's turns auto-accept off, too."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Auto-accept confident labels of classes for which an audit shows that enough of them are right.

    Off until you run this. From then on every training checks the guarantee again. Answers of people are never changed.
    With --rule-out you mark a class without an example absent everywhere. Audits still ask about it.
    """
    from annotator.quality import auto_accept, auto_accept_sample, guarantee
    from annotator.quality.guarantee import Guarantee
    from annotator.store.database.database import Database

    refuse_combined_options(context, "draw", "off", "listed", "rule_out", "undo")
    refuse_combined_options(context, "precision present absent together", "off listed rule_out undo")
    db = Database(project)
    wanted = Guarantee(precision, present, absent, together)
    if draw:
        audit = auto_accept_sample.draw_audit(db, wanted)
        said = (
            f"Audit {audit.id}: {format_count(audit.cells, 'pair')} to check. Answer in the audit grid on the Grid "
            "page."
        )
        print_result({"audit": audit.id, "cells": audit.cells}, as_json, lambda: print(said))
        return
    outcomes = []
    if rule_out is not None:
        _rule_out_class(db, rule_out, by, as_json)
        return
    if undo is not None:
        auto_accept.undo(db, undo)
    elif not listed:
        outcomes = auto_accept.set_guarantee(db, None if off else wanted)
    status = build_auto_accept_status(db, outcomes)

    def text() -> None:
        _print_status(status)
        if outcomes and not any(outcome.cells for outcome in outcomes):
            print(guarantee.describe_feasibility(db, wanted))

    print_result(status, as_json, text)


def _rule_out_class(db, name: str, by: str | None, as_json: bool) -> None:
    from annotator.quality import rule_out
    from annotator.store.classes import classes

    ruled = rule_out.rule_out_class(db, classes.find_class(db, name).id, get_login_name() if by is None else by)

    def text() -> None:
        print(
            f"{escape_unprintable(name)} counts as absent on {format_count(ruled.cells, 'image')} (batch "
            f"{ruled.batch}). At most {100 * ruled.at_most:.1f} % of all images show it (95 %, "
            f"{format_count(ruled.absent, 'random image')}). Audits still ask about it."
        )

    print_result(asdict(ruled), as_json, text)


def build_auto_accept_status(db, outcomes: list) -> dict:
    """Return the state of auto-accept as JSON values: guarantee, counts, `outcomes` of this check, acceptances."""
    from annotator.quality import guarantee
    from annotator.store.classes import classes
    from annotator.store.labels import auto_accepted

    names = classes.load_class_names(db)
    wanted = guarantee.get_guarantee(db)

    def add_class_name(record) -> dict:
        fields = asdict(record)
        return {"class": names.get(fields.pop("class_id"), "all")} | fields

    return {
        "guarantee": wanted and asdict(wanted),
        "cells": auto_accepted.count_accepted(db),
        "ruled_out": auto_accepted.count_ruled_out(db),
        "outcomes": [add_class_name(record) for record in outcomes],
        "acceptances": [add_class_name(record) for record in auto_accepted.load_acceptances(db)],
    }


def _print_status(status: dict) -> None:
    states = {1: "present", -1: "absent"}
    if wanted := status["guarantee"]:
        share = f"{100 * wanted['precision']:g} %"
        print(f"On: accepts where an audit shows, with 95 % confidence, that at least {share} are right.")
    else:
        print("Off: nothing is auto-accepted.")
    for outcome in status["outcomes"]:
        result = outcome["reason"] or f"{format_count(outcome['cells'], 'answer')} accepted"
        print(f"  {outcome['class']}, {states[outcome['state']]}: {result}")
    for acceptance in status["acceptances"]:
        end = (
            f"removed: {acceptance['withdrawn']}"
            if acceptance["withdrawn"]
            else format_count(acceptance["cells"], "answer")
        )
        if by := acceptance["annotator"]:
            print(
                f"  {acceptance['batch']}  {acceptance['class']}, ruled out by {escape_unprintable(by)} after "
                f"{format_count(acceptance['audited'], 'random image')}: {end}"
            )
            continue
        print(
            f"  {acceptance['batch']}  {acceptance['class']}, {states[acceptance['state']]}, from "
            f"{acceptance['threshold']:.3f} of run {acceptance['run_id']} on ({acceptance['wrong']} of "
            f"{format_count(acceptance['audited'], 'audit answer')} wrong): {end}"
        )

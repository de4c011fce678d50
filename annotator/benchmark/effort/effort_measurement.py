"""Labels finished per human effort, by simulated annotators that follow policies on the real code.

Images are embedded once. The project learns only answers and their times.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np

from annotator.benchmark.effort import curves
from annotator.benchmark.effort.comparison import (
    OUR_POLICY,
    RECALL_GOALS,
    RIVAL_POLICY,
    Curves,
    choose_settings,
    compare_policies,
    compute_full_mean,
    format_spread,
    list_costs,
    list_policies,
    ratios_by_seed,
)
from annotator.benchmark.effort.curves import COST_KINDS, SHORTFALL_STARTS
from annotator.benchmark.effort.play import NOISY_PERSON, PERFECT_PERSON, Play, play_all
from annotator.benchmark.effort.policies import POLICIES
from annotator.benchmark.reports import Report, ReportTable
from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.benchmark.simulated_people import ERROR_SHARE, MISSED_SHARE, SALIENCE_SPREAD, SMALL_SHARE
from annotator.benchmark.truth import TrueLabel, find_content_conflicts, read_truth
from annotator.errors import AnnotatorError, combine_problems, did_you_mean
from annotator.exchange import project_setup
from annotator.exchange.imports.image_folders import describe_skipped_files
from annotator.indexing import find_positions
from annotator.records import PRESENT
from annotator.settings import MIN_IMAGES_FOR_FIRST_RUN, SAMPLE_DATA_FOLDER
from annotator.snapshot.time_model import TimeModel
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import audits
from annotator.store.networks import configuration
from annotator.worker.process import Worker

NOISY_POLICIES = (RIVAL_POLICY, OUR_POLICY)  # policies that are also measured with a noisy annotator unless all are
EFFORT_NOTE = (
    "Perfect person: recall as the heading says, at precision 0.99. Noisy person: this share of the recall that their "
    "form ends with, one point below its last precision. With several seeds: the mean, and the smallest and largest in "
    "brackets."
)


@dataclass(frozen=True)
class EffortOptions:
    """Options of simulated work."""

    # empty selects the measurement's default
    policies: Sequence[str] = ()
    # first seed
    seed: int = 0
    # number of seeds to average
    seeds: int = 1
    # parallel processes, without effect on the result
    jobs: int = 1
    # action limit relative to filling in a form per image
    most: float = 1.0
    # folder that keeps the embedded project
    work: Path | None = None
    # None selects the default network
    backbone: str | None = None

    def list_seeds(self) -> list[int]:
        """Return all seeds."""
        return list(range(self.seed, self.seed + self.seeds))


def measure_effort(
    images_folder: Path | None = None,
    truth: Path | None = None,
    options: EffortOptions = EffortOptions(),
    *,
    noisy: bool = True,
    all_noisy: bool = False,
) -> dict:
    """Play every policy with simulated annotators and compare their curves.

    Args:
        images_folder, truth: None selects the sample data.
        options: No policies selects all except slow ones.
        noisy, all_noisy: Also play NOISY_POLICIES, or all, with a noisy annotator.

    Returns:
        {"bench", "figures", "ratios", "goals", "lead", "behind", "searched", "curves", "time_model",
        "noisy_person", "policies", "backbone", "seeds"}.

    Raises:
        AnnotatorError: If images and truth do not match, or for an unknown policy.
    """
    names = check_policies(options.policies) or [name for name, policy in POLICIES.items() if not policy.on_request]
    images_folder, truth = resolve_images_and_truth(images_folder, truth)
    with scratch_folder() as folder:
        template = folder / "project" if options.work is None else options.work
        shown = make_project(template, images_folder, truth, options.backbone)
        limit = options.most * (shown.sum() + len(shown))
        people = [(name, PERFECT_PERSON) for name in names]
        people += [(name, NOISY_PERSON) for name in names if all_noisy or (noisy and name in NOISY_POLICIES)]
        settings = [(one, by) for name, by in people for one in POLICIES[name].settings or (name,)]
        plays = [Play(name, by, seed) for seed in options.list_seeds() for name, by in settings]
        played = play_all(template, folder, shown, plays, limit, options.jobs)
        used = configuration.get_backbone(Database(template))
    searched = []
    for name in names:
        if POLICIES[name].settings:
            played, rows = choose_settings(played, name, POLICIES[name].settings)
            searched += rows
    more = {"searched": searched, "backbone": used, "seeds": options.list_seeds()}
    return _make_result(played, shown) | more


def check_policies(names: Sequence[str]) -> list[str]:
    """Return the names of policies without repetitions. Raises AnnotatorError for an unknown one."""
    if unknown := [name for name in names if name not in POLICIES]:
        raise AnnotatorError(f"There is no policy {unknown[0]!r}. {did_you_mean(unknown[0], POLICIES)}")
    return list(dict.fromkeys(names))


def resolve_images_and_truth(images_folder: Path | None, truth: Path | None) -> tuple[Path, Path]:
    """Return image folder and truth file, those of the sample data if both are None.

    Raises AnnotatorError if only one is given.
    """
    if (images_folder is None) != (truth is None):
        raise AnnotatorError("Images and their truth belong together: give both --images and --truth, or neither.")
    return images_folder or SAMPLE_DATA_FOLDER / "images", truth or SAMPLE_DATA_FOLDER / "truth.csv"


def make_project(
    project: Path, folder: Path, truth: Path, backbone: str | None = None, *, should_embed: bool = True
) -> np.ndarray:
    """Create a project without decisions and return its truth (N, C) bool by ascending ids.

    Raises AnnotatorError if the truth does not match, or there are too few images.
    """
    settings = project_setup.SetupSettings(backbone=backbone)
    done = project_setup.set_up_project(project, images_folder=folder, settings=settings)
    print_progress("; ".join([f"{done.registered.added:,} new images", *describe_skipped_files(done.registered.bad)]))
    db = Database(project)
    names = images.add_short_names(images.load_ids_by_name(db))
    given = load_present_labels(db, names, truth)
    if not given:
        raise AnnotatorError(f"{truth} has no label 'present': there is nothing to find.")
    classes.add_classes(db, [(name, "") for name in sorted({label.class_name for label in given})])
    if should_embed:
        embed_images(project)
    image_ids = audits.load_readable_image_ids(db)
    columns = {class_.name: column for column, class_ in enumerate(classes.load_active_classes(db))}
    shown = np.zeros((len(image_ids), len(columns)), bool)
    rows, known = find_positions([names[label.image] for label in given], image_ids)
    for label, row in zip(compress(given, known), rows[known], strict=True):
        shown[row, columns[label.class_name]] = True
    if len(image_ids) < MIN_IMAGES_FOR_FIRST_RUN:
        raise AnnotatorError(
            f"{len(image_ids)} images are too few to compare ways to label them: take {MIN_IMAGES_FOR_FIRST_RUN}."
        )
    return shown


def embed_images(project: Path) -> None:
    """Embed all images of a project that lack an embedding, like its worker."""
    worker = Worker(project)
    try:
        print_progress("embedding")
        worker.image_embedder.embed_missing()
        worker.first_order_publisher.publish_if_due(all_embedded=True)
    finally:
        worker.close()


def load_present_labels(db: Database, names: dict[str, int], truth: Path) -> list[TrueLabel]:
    """Return the present labels in the truth file, without those of images that the project rejected.

    `names` maps image names to ids. Raises AnnotatorError if the truth does not match, or contradicts itself for
    duplicate images.
    """
    bad = {file.path for file in images.load_rejected_files(db)}
    labels = read_truth(truth, names.keys() | bad)
    if problems := find_content_conflicts(labels, names):
        raise combine_problems(f"The truth {truth} cannot be used:", problems)
    if left_out := {label.image for label in labels} - names.keys():
        print_progress(
            f"the truth of {len(left_out):,} files is not used: they were kept out, such as {min(left_out)!r}"
        )
    return [label for label in labels if label.state == PRESENT and label.image in names]


def _make_result(played: Curves, truth: np.ndarray) -> dict:
    figures: dict[str, float | None] = {
        "images": len(truth),
        "classes": truth.shape[1],
        "labels_per_image": round(float(truth.sum() / len(truth)), 3),
    }
    tables, ratios = compare_policies(played), {}
    for row in tables["goals"]:
        for cost in curves.COST_KINDS:
            reached = row["reached"] == row["seeds"]
            figures[f"{_make_key(row)}_{cost}_at_recall_{100 * row['goal']:.0f}"] = (
                row[cost]["mean"] if reached else None
            )
        if row["person"] == NOISY_PERSON and row["goal"] == curves.GOAL_RECALL:
            figures["noisy_compared_at_recall"], figures["noisy_compared_at_precision"] = (
                row["recall"],
                row["precision"],
            )
    for by in (PERFECT_PERSON, NOISY_PERSON):
        for name in list_policies(played, by):
            key = _make_key({"policy": name, "person": by})
            ends = [curve[-1] for play, curve in played.items() if (play.policy, play.person) == (name, by)]
            for score in ("micro_f1", "macro_f1"):
                best = [max(end[kind][score] for kind in ("decided", "filled")) for end in ends]
                figures[f"{key}_final_{score}"] = compute_full_mean(best, 5)
            if name != OUR_POLICY:
                ratios |= _make_ratios(played, name, by, key)
    for row in tables["behind"]:
        figures[f"autopilot_behind_{_make_key(row)}_in_{row['cost']}"] = row["share"]["mean"]
    return {
        "bench": "effort",
        "figures": figures,
        "ratios": {key: value for key, value in ratios.items() if value is not None},
        **tables,
        "curves": [
            {"policy": play.policy, "person": play.person, "seed": play.seed, "points": curve}
            for play, curve in played.items()
        ],
        "time_model": vars(TimeModel()),
        "noisy_person": {
            "small": SMALL_SHARE,
            "missed_of_small": MISSED_SHARE,
            "errs": ERROR_SHARE,
            "salience": SALIENCE_SPREAD,
        },
        "policies": {play.policy: POLICIES[play.policy].about for play in played},
    }


def _make_key(row: dict) -> str:
    return row["policy"].replace("-", "_") + ("" if row["person"] == PERFECT_PERSON else "_noisy")


def _make_ratios(played: Curves, name: str, person: str, key: str) -> dict[str, float | None]:

    def compute_ratio(cost: Callable[[dict], float]) -> float | None:
        theirs, ours = (list_costs(played, policy, person, curves.GOAL_RECALL, cost) for policy in (name, OUR_POLICY))
        return compute_full_mean(ratios_by_seed(theirs, ours), 2) if len(ours) == len(theirs) else None

    ratios = {f"{key}_over_autopilot_actions_at_recall_95": compute_ratio(lambda point: point["actions"])}
    for model_name, time_model in curves.make_time_models().items():
        if model_name == "usual" or name == RIVAL_POLICY:
            suffix = "" if model_name == "usual" else f"_{model_name}"
            ratios[f"{key}_over_autopilot_seconds_at_recall_95{suffix}"] = compute_ratio(
                lambda point, time_model=time_model: curves.compute_seconds(point, time_model)
            )
    return ratios


def build_effort_report(result: dict, command: str) -> Report:
    """Return the report: the costs of the goals, Autopilot against the others, and the settings tried."""
    costs = [
        table
        for by in (PERFECT_PERSON, NOISY_PERSON)
        for cost in COST_KINDS
        if (table := _build_costs_table(result, by, cost)).rows
    ]
    others = [build(result) for build in (_build_lead_table, _build_shortfall_table, _build_settings_table)]
    tables = [*costs, *(table for table in others if table.rows)]
    return Report([describe_effort(result)], tables, [EFFORT_NOTE], command=command)


def describe_effort(result: dict) -> str:
    figures, seeds = result["figures"], result["seeds"]
    return (
        f"{figures['images']:,} images, {figures['classes']} classes, {figures['labels_per_image']:g} labels an image; "
        f"network {result['backbone']}; seeds {', '.join(map(str, seeds))}"
    )


def _list_policies(result: dict, person: str) -> list[str]:
    return list(dict.fromkeys(row["policy"] for row in result["goals"] if row["person"] == person))


def _build_costs_table(result: dict, person: str, cost: str) -> ReportTable:
    goals = [row for row in result["goals"] if row["person"] == person]
    rows = [
        [policy, *(_format_cost(row, cost) for row in goals if row["policy"] == policy)]
        for policy in _list_policies(result, person)
    ]
    unit = "Actions" if cost == "actions" else "Minutes"
    return ReportTable(["policy", *_list_goal_headings()], rows, f"{unit} to recall, {person} person")


def _build_lead_table(result: dict) -> ReportTable:
    rows = [
        [f"{by} person, {cost}", *map(_format_lead, leads)]
        for by in (PERFECT_PERSON, NOISY_PERSON)
        for cost in COST_KINDS
        if (leads := [row for row in result["lead"] if (row["person"], row["cost"]) == (by, cost)])
    ]
    title = "Autopilot over the best other policy (below 1: Autopilot is first)"
    return ReportTable(["", *_list_goal_headings()], rows, title)


def _build_shortfall_table(result: dict) -> ReportTable:
    rows = [
        [policy + ("" if by == PERFECT_PERSON else ", noisy"), *map(_format_behind, behind)]
        for by in (PERFECT_PERSON, NOISY_PERSON)
        for policy in _list_policies(result, by)
        if (behind := [row for row in result["behind"] if (row["policy"], row["person"]) == (policy, by)])
    ]
    actions, minutes = SHORTFALL_STARTS["actions"], SHORTFALL_STARTS["seconds"] / 60
    title = (
        "Autopilot's largest shortfall in micro F1 (with the model's labels) after the first "
        f"{actions:.0f} actions or {minutes:.0f} minutes"
    )
    return ReportTable(["behind", "at the same actions", "at the same time"], rows, title)


def _build_settings_table(result: dict) -> ReportTable:
    rows = [
        [
            *(row["setting"], row["person"], _format_mean(row["actions"], 1, 0), _format_mean(row["seconds"], 60, 1)),
            "chosen" if row["chosen"] else "",
        ]
        for row in result["searched"]
    ]
    title = "The settings that were searched: the fewest seconds to recall 0.95 are chosen"
    return ReportTable(["setting", "person", "actions", "minutes", ""], rows, title)


def _list_goal_headings() -> list[str]:
    return [f"{goal:.2f}" for goal in RECALL_GOALS]


def _format_cost(row: dict, cost: str) -> str:
    if not row["reached"]:
        return "not reached"
    text = format_spread(row[cost], 1 if cost == "actions" else 60, 0 if cost == "actions" else 1)
    return text if row["reached"] == row["seeds"] else f"{text}, with {row['reached']} of {row['seeds']} seeds"


def _format_lead(row: dict) -> str:
    if row["best"] is None:
        return "no other reaches it"
    return f"{format_spread(row['ratio'], 1, 2) if row['ratio'] else 'not reached'} ({row['best']})"


def _format_behind(row: dict) -> str:
    if row["at"] is None:
        return "never"
    where = f"{row['at']:,.0f} actions" if row["cost"] == "actions" else f"{row['at'] / 60:.1f} min"
    return f"{format_spread(row['share'], 0.01, 1)} %, at {where}"


def _format_mean(mean: float | None, unit: float, digits: int) -> str:
    return "not reached" if mean is None else f"{mean / unit:,.{digits}f}"

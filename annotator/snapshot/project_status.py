"""The project state for `annotator status --json` and the Progress page."""

from dataclasses import asdict
from typing import Any

from annotator.humanize import format_count, format_duration
from annotator.settings import LEFT_OUT_SETTING
from annotator.snapshot.project_progress import load_progress
from annotator.snapshot.suggestions import describe_guess_sources
from annotator.store.classes import classes
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import count_features
from annotator.store.features.project_contents import ProjectContents
from annotator.store.images import images
from annotator.store.labels import auto_accepted, disagreed_cells, project_counts
from annotator.store.networks import adaptation, configuration, embedding_claim
from annotator.store.runs import runs


def collect_status(db: Database, *, with_files: bool = True) -> dict[str, Any]:
    """Return the project state as a dict with Unix times. `with_files` also lists skipped and missing files."""
    counts = project_counts.count_images_by_stage(db)
    progress = load_progress(db, counts=counts)
    worker = heartbeat.load_worker_state(db)
    backbone = configuration.get_backbone(db)
    return {
        "project": str(db.paths.project),
        "progress": asdict(progress) | {"sentence": progress.sentence()},
        "images": counts["all"],
        "classes": len(classes.load_active_classes(db)),
        "decisions": project_counts.count_decisions_by_source(db),
        "labels": project_counts.count_labels_by_state(db),
        "accepted": auto_accepted.count_accepted(db),
        "ruled_out": auto_accepted.count_ruled_out(db),
        "images_without_decision": counts["without_decision"],
        "images_skipped": counts["skipped"],
        "images_complete": counts["complete"],
        "flagged": project_counts.count_flagged_images(db),
        "annotator_disagreements": disagreed_cells.count(db),
        "files_kept_out_in_all": images.count_rejected_files(db),
        "images_missing_in_all": images.count_missing(db),
        **(_list_problem_files(db) if with_files else {}),
        "method": configuration.get_method(db),
        "parameters": configuration.get_parameters(db),
        "backbone": backbone,
        "features": count_features(db.paths.features(backbone), db.caches, ProjectContents(db)),
        "worker": {
            "state": worker.state,
            "alive": worker.alive,
            "condition": worker.condition.value,
            "delay": worker.delay,
            "pid": worker.pid,
            "heartbeat_at": worker.heartbeat_at,
            "progress_at": worker.progress_at,
            "done": worker.done,
            "of": worker.of,
        },
        "embedding": _build_embedding_state(db),
        "adapting_again": _build_readaptation(db),
        "run": _build_run_state(db),
        "last_error": worker.last_error or None,
        "last_error_advice": worker.advice,
        "last_error_at": worker.last_error_at,
        "left_out": db.get_setting(LEFT_OUT_SETTING, []),
    }


def _list_problem_files(db: Database) -> dict[str, Any]:
    return {
        "files_kept_out": [{"file": file.path, "reason": file.reason} for file in images.load_rejected_files(db)],
        "files_kept_out_by_reason": images.count_rejected_by_reason(db),
        "images_missing": [{"image": image.path, "reason": image.reason} for image in images.load_missing_images(db)],
    }


def _build_readaptation(db: Database) -> dict[str, Any] | None:
    due = adaptation.find_reason_to_readapt(db)
    if due is None:
        return None
    return {"network": due.network, "answers_before": due.before, "answers": due.answers, "sentence": due.sentence}


def _build_embedding_state(db: Database) -> dict[str, Any] | None:
    state = embedding_claim.get_running(db)
    if state is None:
        return None
    return {
        "on": state.on,
        "pid": state.pid,
        "host": state.host,
        "done": state.done,
        "of": state.of,
        "images_a_second": round(state.images_a_second, 2),
        "seconds_left": None if state.seconds_left is None else round(state.seconds_left),
        "workers": state.workers,
        "nodes": dict(state.nodes),
        "note": state.note,
    }


def describe_embedding(state: dict[str, Any]) -> str:
    """Describe the progress of `annotator embed` from its state, without a period."""
    words = [f"on {state['on']}, {state['done']:,} of {format_count(state['of'], 'image')}"]
    if state["workers"]:
        words.append(format_count(state["workers"], "worker"))
    if state["images_a_second"]:
        nodes = ", ".join(f"{node} {rate:,.0f}" for node, rate in state["nodes"].items())
        words.append(
            f"{state['images_a_second']:,.0f} images a second" + (f" ({nodes})" if len(state["nodes"]) > 1 else "")
        )
    if state["seconds_left"] is not None:
        words.append(f"about {format_duration(state['seconds_left'])} left")
    if state["note"]:
        words.append(state["note"])
    return "; ".join(words)


def _build_run_state(db: Database) -> dict[str, Any] | None:
    run = runs.load_current_run(db)
    if run is None:
        return None
    return {
        "id": run.id,
        "method": run.method,
        "epochs": run.epochs,
        "seconds": round(run.seconds, 3),
        "images": run.images,
        "finished_at": run.finished_at,
        "threshold": run.threshold,
        "last_decision": run.last_decision_id,
        "newer_decisions": project_counts.count_decisions_after(db, run.last_decision_id),
        "guessed": describe_guess_sources(db, run),
    }

"""The state of a project in one dict: what `annotator status --json` prints and the Progress page shows."""

from dataclasses import asdict
from typing import Any

from annotator.settings import LEFT_OUT
from annotator.shares import counted, seconds_in_words
from annotator.snapshot.progress import progress_of
from annotator.snapshot.suggestions import guessed_in_words
from annotator.store.classes import classes
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.features.cache import count_features
from annotator.store.features.contents import ProjectContents
from annotator.store.images import images
from annotator.store.labels import auto_accepted
from annotator.store.labels import counts as overview
from annotator.store.labels import disagreement as annotator_disagreement
from annotator.store.networks import adaptation, configuration, embedding
from annotator.store.runs import runs


def status(db: Database, *, with_files: bool = True) -> dict[str, Any]:
    """Return images, classes, decisions, labels, worker, run and problems of a project; times are unix seconds.

    Args:
        db: The project's database.
        with_files: Name the skipped files and the missing images, which may be many; otherwise they are only counted.
    """
    counts = overview.image_counts(db)
    progress = progress_of(db, counts=counts)
    worker = heartbeat.worker_state(db)
    backbone = configuration.backbone(db)
    return {
        "project": str(db.paths.project),
        "progress": asdict(progress) | {"sentence": progress.sentence()},
        "images": counts["all"],
        "classes": len(classes.all_classes(db)),
        "decisions": overview.decisions_by_source(db),
        "labels": overview.labels_by_state(db),
        "accepted": auto_accepted.counts(db),
        "ruled_out": auto_accepted.count_ruled_out(db),
        "images_without_decision": counts["without_decision"],
        "images_skipped": counts["skipped"],
        "images_complete": counts["complete"],
        "flagged": overview.count_flagged(db),
        "annotator_disagreements": annotator_disagreement.count(db),
        "files_kept_out_in_all": images.count_kept_out(db),
        "images_missing_in_all": images.count_missing(db),
        **(_files(db) if with_files else {}),
        "method": configuration.method(db),
        "parameters": configuration.parameters(db),
        "backbone": backbone,
        "features": count_features(db.paths.features(backbone), db.caches, ProjectContents(db)),
        "worker": {
            "state": worker.state,
            "alive": worker.alive,
            "pid": worker.pid,
            "heartbeat_at": worker.heartbeat_at,
            "done": worker.done,
            "of": worker.of,
        },
        "embedding": _embedding(db),
        "adapting_again": _adapting_again(db),
        "run": _run(db),
        "last_error": worker.last_error or None,
        "last_error_at": worker.last_error_at,
        "left_out": db.setting(LEFT_OUT, []),
    }


def _files(db: Database) -> dict[str, Any]:
    return {
        "files_kept_out": [{"file": file.path, "reason": file.reason} for file in images.kept_out(db)],
        "files_kept_out_by_reason": images.kept_out_by_reason(db),
        "images_missing": [{"image": image.path, "reason": image.reason} for image in images.missing(db)],
    }


def _adapting_again(db: Database) -> dict[str, Any] | None:
    """Return the reason for adapting the network again, as a JSON value; None without a reason."""
    due = adaptation.reason_to_adapt(db)
    if due is None:
        return None
    return {"network": due.network, "answers_before": due.before, "answers": due.answers, "sentence": due.sentence}


def _embedding(db: Database) -> dict[str, Any] | None:
    """Return how far `annotator embed` is, as a JSON value; None while none runs."""
    state = embedding.running(db)
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


def embedding_in_words(state: dict[str, Any]) -> str:
    """Return how far `annotator embed` is, from status()["embedding"]: a clause without a full stop."""
    words = [f"on {state['on']}, {state['done']:,} of {counted(state['of'], 'image')}"]
    if state["workers"]:
        words.append(counted(state["workers"], "worker"))
    if state["images_a_second"]:
        nodes = ", ".join(f"{node} {rate:,.0f}" for node, rate in state["nodes"].items())
        words.append(
            f"{state['images_a_second']:,.0f} images a second" + (f" ({nodes})" if len(state["nodes"]) > 1 else "")
        )
    if state["seconds_left"] is not None:
        words.append(f"about {seconds_in_words(state['seconds_left'])} left")
    if state["note"]:
        words.append(state["note"])
    return "; ".join(words)


def _run(db: Database) -> dict[str, Any] | None:
    run = runs.current_run(db)
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
        "newer_decisions": overview.decisions_newer_than(db, run.last_decision_id),
        "guessed": guessed_in_words(db, run),
    }

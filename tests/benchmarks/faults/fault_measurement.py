"""Kills, full and stalled disks and jumping clocks while people work, and a check of all acknowledged decisions.

The project is generated: small random images with random features. All random choices follow from the seed, but when
processes run does not: two runs of one seed differ.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout
from harness import projects
from harness.child_processes import wait_for

from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.errors import AnnotatorError
from annotator.records import Decision
from annotator.settings import IMPORT_ANNOTATOR
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.runs import runs
from annotator.worker.process import Worker
from benchmarks.faults import guarantee_checks
from benchmarks.faults.hands import Hands
from benchmarks.faults.simulated_pages import Ask, SentDecisions, SimulatedPage, send_request
from benchmarks.faults.system import CLOCK_JUMPS, FAKE_TIME, Commands, Server

PEOPLE_NAMES = ("Ann", "Bob", "Cy", "Dee", "Eve", "Fay", "Gus", "Hal")
PAGES_EACH = 2
PROJECT_IMAGES, PROJECT_CLASSES = 1500, 6
FAULT_PAUSE_SECONDS = 0.8  # between two faults, on average
TRAINING_STATES = ("training", "looking at regions of images")  # states of a worker in the middle of a training
TRAINING_WAIT_SECONDS = 20.0  # to wait for a training that is then killed
IMPORTED_LABELS = 60  # labels at the start, and a run trained on them, so that every page has something to show
DRAIN_SECONDS = 120.0
FAULT_WEIGHTS = {"server": 32, "worker": 20, "both": 8, "training": 10, "stalled disk": 8, "full disk": 10, "clock": 6}


def measure(
    kills: int = 100,
    seconds: float | None = None,
    seeds: Sequence[int] = (0,),
    people: int = 4,
    work: Path | None = None,
) -> dict:
    """Cause faults while people work, and count broken guarantees over all seeds, with one project for each.

    Args:
        kills: The number of processes killed, for each seed.
        seconds: The longest time for each seed; None: no limit.
        seeds: The seeds, one repetition each.
        people: The number of people, at most as many as PEOPLE_NAMES, with two pages each.
        work: A folder that keeps the result of each seed, so that finished seeds are not repeated; None: none is kept.

    Returns:
        {"bench", "figures", "ratios", "broken"}; broken: a sentence for each broken guarantee.

    Raises:
        AnnotatorError: The system has no /proc, or the number of people is out of range.
    """
    if not Path("/proc/self/cmdline").exists():
        raise AnnotatorError("This measurement looks for processes in /proc, which is only there on Linux.")
    if not 1 <= people <= len(PEOPLE_NAMES):
        raise AnnotatorError(f"{people} people are out of range: 1 to {len(PEOPLE_NAMES)} can work at once.")
    figures: Counter[str] = Counter()
    broken: list[str] = []
    for seed in seeds:
        result = _read_result(work, seed) or _measure_seed(kills, seconds, seed, people)
        if work:
            work.mkdir(parents=True, exist_ok=True)
            (work / f"seed-{seed}.json").write_text(json.dumps(result))
        figures.update(result["figures"])
        broken += [f"seed {seed}: {sentence}" for sentence in result["broken"]]
    rate = 60 * figures["kills"] / max(figures["seconds"], 1e-9)
    return {
        "bench": "faults",
        "figures": dict(figures),
        "ratios": {"kills_a_minute": round(rate, 1)},
        "broken": broken,
    }


@dataclass
class _Tally:
    """Counts of kills and other faults, and of the states in which workers were killed."""

    kills: Counter = field(default_factory=Counter)
    other: Counter = field(default_factory=Counter)
    worker_states: Counter = field(default_factory=Counter)


def _read_result(work: Path | None, seed: int) -> dict | None:
    path = work and work / f"seed-{seed}.json"
    return json.loads(path.read_text()) if path and path.exists() else None


def _measure_seed(kills: int, seconds: float | None, seed: int, people: int) -> dict:
    with scratch_folder() as folder:
        db = _make_project(folder)
        for subfolder in ("exports", "logs"):
            (folder / subfolder).mkdir()
        server, sent, hands, tally = Server(db, folder / "logs"), SentDecisions(), Hands(), _Tally()
        server.start()
        pages = [
            SimulatedPage(PEOPLE_NAMES[number // PAGES_EACH], number, seed, _build_asker(server), sent, hands)
            for number in range(PAGES_EACH * people)
        ]
        started = time.monotonic()
        for page in pages:
            page.start()
        commands = Commands(db, folder / "exports", seed)
        chance = random.Random(seed)
        while sum(tally.kills.values()) + commands.count_kills() < kills:
            if seconds is not None and time.monotonic() - started > seconds:
                break
            time.sleep(chance.expovariate(1 / FAULT_PAUSE_SECONDS))
            _cause_fault(chance, server, tally)
            print_progress(
                f"seed {seed}: {sum(tally.kills.values()) + commands.count_kills():,} kills, "
                f"{len(sent.acknowledged):,} saved"
            )
        elapsed = time.monotonic() - started
        commands.end()
        drained = _drain_pages(server, pages)
        server.end()
        return _build_result(db, sent, hands, tally, commands, pages, elapsed, drained)


def _build_asker(server: Server) -> Ask:
    return lambda annotator, path, body, patience: send_request(
        server.address, server.get_headers(annotator), path, body, patience
    )


def _cause_fault(chance: random.Random, server: Server, tally: _Tally) -> None:
    kind = chance.choices(list(FAULT_WEIGHTS), list(FAULT_WEIGHTS.values()))[0]
    if kind == "training":
        if server.wait_for_worker(TRAINING_STATES, TRAINING_WAIT_SECONDS):
            time.sleep(chance.uniform(0, 1.5))
        kind = chance.choice(["worker", "worker", "both"])
    if kind in ("worker", "both") and (state := server.kill_worker()):
        tally.kills["worker"] += 1
        tally.worker_states[state] += 1
    if kind in ("server", "both", "clock"):
        server.kill()
        tally.kills["server"] += 1
        jump = chance.choice(CLOCK_JUMPS) if kind == "clock" and FAKE_TIME else ""
        if jump:
            tally.other["clock_jumps"] += 1
        server.start(jump)
        if jump:  # and back
            time.sleep(chance.uniform(0.5, 3))
            server.kill()
            tally.kills["server"] += 1
            server.start()
    elif kind == "stalled disk":
        server.stall(chance.uniform(0.3, 3))
        tally.other["stalls"] += 1
    elif kind == "full disk":
        room = chance.choice([0, 4096, server.db.paths.database.stat().st_size])
        tally.other["full_disks"] += server.fill_disk(chance.uniform(0.3, 2), room)


def _drain_pages(server: Server, pages: list[SimulatedPage]) -> bool:
    """Return whether every page could send its remaining decisions in time once the faults had ended."""
    if server.process.poll() is not None:
        server.start()
    for page in pages:
        page.end()
    deadline = time.monotonic() + DRAIN_SECONDS
    for page in pages:
        page.join(max(0.0, deadline - time.monotonic()))
    return not any(page.is_alive() for page in pages)


def _build_result(
    db: Database,
    sent: SentDecisions,
    hands: Hands,
    tally: _Tally,
    commands: Commands,
    pages: list[SimulatedPage],
    elapsed: float,
    drained: bool,
) -> dict:
    held = [f"{lock.name} is still held" for lock in (db.paths.server_lock, db.paths.worker_lock) if not _is_free(lock)]
    if not held:
        _train_project(db)  # a worker deletes what killed ones have left
        commands.run_command("export", 60)
    broken = guarantee_checks.find_broken_decisions(db, sent) | {
        "tables": guarantee_checks.find_broken_tables(db),
        "files": guarantee_checks.find_broken_files(db, commands.export_paths),
        "held_twice": [str(conflict) for conflict in hands.double_holdings],
        "leftovers": held
        + guarantee_checks.find_leftovers(db.paths.project, [db.paths.runs, db.paths.features(""), db.paths.map("")]),
        "commands": commands.odd_outputs,
        "not_saved": []
        if drained
        else [f"{page.name}: {page.waiting_count} decisions" for page in pages if page.waiting_count],
        "trouble": [f"{page.name}: {page.trouble!r}" for page in pages if page.trouble],
    }
    counts, sentences = guarantee_checks.count_broken(broken)
    run = runs.load_current_run(db)
    figures = {
        "kills": sum(tally.kills.values()) + commands.count_kills(),
        "kills_of_server": tally.kills["server"],
        "kills_of_worker": tally.kills["worker"],
        "kills_of_worker_while_training": sum(tally.worker_states[state] for state in TRAINING_STATES),
        **{f"kills_of_{name}": count for name, count in sorted(commands.kill_counts.items())},
        **{f"ended_{name}": count for name, count in sorted(commands.end_counts.items())},
        "clock_jumps": tally.other["clock_jumps"],
        "stalls": tally.other["stalls"],
        "full_disks": tally.other["full_disks"],
        "seconds": round(elapsed, 1),
        "pages": len(pages),
        "decisions_sent": len(sent.entries),
        "decisions_acknowledged": len(sent.acknowledged),
        "decisions_refused": len(sent.refused),
        "leases": hands.handed_out_count,
        "runs": run.id if run else 0,
        **{f"broken_{name}": count for name, count in counts.items()},
    }
    for reason, count in Counter(sent.refused.values()).most_common(5):
        print_progress(f"refused {count:,} times: {reason}")
    return {"figures": figures, "broken": sentences}


def _is_free(path: Path) -> bool:
    def can_be_taken() -> bool:
        try:
            with FileLock(path, timeout=0):
                return True
        except Timeout:
            return False

    try:  # a worker that lost its server has some seconds to end
        return wait_for(can_be_taken, f"the lock {path.name}", 15.0)
    except AnnotatorError:
        return False


def _make_project(folder: Path) -> Database:
    projects.write_noise_images(folder / "images", PROJECT_IMAGES, (32, 24))
    db = projects.make_empty_project(folder, PROJECT_CLASSES)
    features = np.maximum(np.random.default_rng(0).normal(size=(PROJECT_IMAGES, projects.FEATURE_DIMENSIONS)), 0)
    projects.save_features(db, features.astype(np.float16))
    labels = [  # ids of images count from 1
        Decision(
            f"imported-{image_id}", "label", IMPORT_ANNOTATOR, "import", image_id, 1 + image_id % PROJECT_CLASSES, 1
        )
        for image_id in range(1, min(IMPORTED_LABELS, PROJECT_IMAGES) + 1)
    ]
    decisions.save(db, labels)
    _train_project(db)
    return db


def _train_project(db: Database) -> None:
    worker = Worker(db.paths.project)
    try:
        worker.training.train_or_record_error()
    finally:
        worker.close()

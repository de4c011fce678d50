"""Kills, full and stalled disks and jumping clocks, while people work: what is left of what was acknowledged.

A made-up project of small drawn images, with features drawn at random. Everything is drawn from the seed,
but not when processes get to run: two runs of one seed differ.
"""

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout
from PIL import Image

from annotator.benchmark.faults import compare
from annotator.benchmark.faults.hands import Hands
from annotator.benchmark.faults.people import Person, Sent, ask
from annotator.benchmark.faults.system import FAKE_TIME, JUMPS, Commands, Server
from annotator.benchmark.harness.processes import say, wait_for
from annotator.errors import AnnotatorError
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE, IMPORTER
from annotator.store import classes, decisions, images, registration, runs
from annotator.store.arrays import add_features
from annotator.store.database import Database
from annotator.worker.process import Worker

NAMES = ("Ann", "Bob", "Cy", "Dee", "Eve", "Fay", "Gus", "Hal")
PAGES_EACH = 2
IMAGES, CLASSES = 1500, 6
DIMENSIONS, REGIONS = 1280, 9  # as the default backbone has them
PAUSE = 0.8  # seconds between two faults, on average
TRAINS = ("training", "looking at regions of images")  # states of a worker in the middle of a training
TRAINING = 20.0  # seconds that a training is waited for, to be killed
IMPORTED = 60  # labels from the start, and a run from them: every page has something to show
DRAIN = 120.0
FAULTS = {"server": 32, "worker": 20, "both": 8, "training": 10, "stalled disk": 8, "full disk": 10, "clock": 6}


def measure(
    kills: int = 100,
    seconds: float | None = None,
    seeds: Sequence[int] = (0,),
    people: int = 4,
    work: Path | None = None,
) -> dict:
    """Faults against promises, summed over the seeds, a project each.

    kills      processes killed, for each seed
    seconds    of each seed at most; None: until there were so many kills
    people     at most as many as NAMES, with two pages each
    work       where the result of each seed is kept: asked again, finished ones are not repeated; None: nowhere
    returns    {"bench", "figures", "ratios", "broken"}; broken: every promise that was, in words

    Raises AnnotatorError where there is no /proc, and for a number of people there is not.
    """
    if not Path("/proc/self/cmdline").exists():
        raise AnnotatorError("This measurement looks for processes in /proc, which is only there on Linux.")
    if not 1 <= people <= len(NAMES):
        raise AnnotatorError(f"{people} people cannot be had; there are 1 to {len(NAMES)}.")
    figures: Counter[str] = Counter()
    broken: list[str] = []
    for seed in seeds:
        found = _kept(work, seed) or _one(kills, seconds, seed, people)
        if work:
            work.mkdir(parents=True, exist_ok=True)
            (work / f"seed-{seed}.json").write_text(json.dumps(found))
        figures.update(found["figures"])
        broken += [f"seed {seed}: {one}" for one in found["broken"]]
    rate = 60 * figures["kills"] / max(figures["seconds"], 1e-9)
    return {
        "bench": "faults",
        "figures": dict(figures),
        "ratios": {"kills_a_minute": round(rate, 1)},
        "broken": broken,
    }


@dataclass
class _Tally:
    """What was done to the processes."""

    kills: Counter = field(default_factory=Counter)
    other: Counter = field(default_factory=Counter)
    worker_states: Counter = field(default_factory=Counter)


def _kept(work: Path | None, seed: int) -> dict | None:
    path = work and work / f"seed-{seed}.json"
    return json.loads(path.read_text()) if path and path.exists() else None


def _one(kills: int, seconds: float | None, seed: int, people: int) -> dict:
    with tempfile.TemporaryDirectory(prefix="annotator-bench-") as name:
        folder = Path(name)
        db = _make_project(folder)
        for place in ("exports", "logs"):
            (folder / place).mkdir()
        server, sent, hands, tally = Server(db, folder / "logs"), Sent(), Hands(), _Tally()
        server.start()
        pages = [
            Person(NAMES[number // PAGES_EACH], number, seed, _asker(server), sent, hands)
            for number in range(PAGES_EACH * people)
        ]
        started = time.monotonic()
        for one in pages:
            one.start()
        commands = Commands(db, folder / "exports", seed)
        chance = random.Random(seed)
        while sum(tally.kills.values()) + commands.count() < kills:
            if seconds is not None and time.monotonic() - started > seconds:
                break
            time.sleep(chance.expovariate(1 / PAUSE))
            _harm(chance, server, tally)
            say(
                f"seed {seed}: {sum(tally.kills.values()) + commands.count():,} kills, {len(sent.acknowledged):,} saved"
            )
        took = time.monotonic() - started
        commands.end()
        drained = _drain(server, pages)
        server.end()
        return _result(db, folder, sent, hands, tally, commands, pages, took, drained)


def _asker(server: Server):
    return lambda annotator, path, body, patience: ask(server.address, server.headers(annotator), path, body, patience)


def _harm(chance: random.Random, server: Server, tally: _Tally) -> None:
    kind = chance.choices(list(FAULTS), list(FAULTS.values()))[0]
    if kind == "training":
        if server.wait_for_worker(TRAINS, TRAINING):
            time.sleep(chance.uniform(0, 1.5))
        kind = chance.choice(["worker", "worker", "both"])
    if kind in ("worker", "both") and (state := server.kill_worker()):
        tally.kills["worker"] += 1
        tally.worker_states[state] += 1
    if kind in ("server", "both", "clock"):
        server.kill()
        tally.kills["server"] += 1
        jump = chance.choice(JUMPS) if kind == "clock" and FAKE_TIME else ""
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


def _drain(server: Server, pages: list[Person]) -> bool:
    """Whether all that people still had to send was saved, with nobody killing anything any more."""
    if server.process.poll() is not None:
        server.start()
    for one in pages:
        one.end()
    until = time.monotonic() + DRAIN
    for one in pages:
        one.join(max(0.0, until - time.monotonic()))
    return not any(one.is_alive() for one in pages)


def _result(
    db, folder, sent: Sent, hands: Hands, tally: _Tally, commands: Commands, pages, took: float, drained
) -> dict:
    locks = [lock.name for lock in (db.paths.server_lock, db.paths.worker_lock) if not _is_free(lock)]
    left = [f"{one} is still held" for one in locks]
    if not locks:
        _train(db)  # a worker clears up after those that were killed
        commands.run("export", 60)
    told = compare.decisions_broken(db, sent) | {
        "tables": compare.tables_broken(db),
        "files": compare.files_broken(db, commands.exports),
        "held_twice": [str(one) for one in hands.twice],
        "leftovers": left
        + compare.leftovers(db.paths.project, [db.paths.runs, db.paths.features(""), db.paths.map("")]),
        "commands": commands.odd,
        "not_saved": [] if drained else [f"{one.name}: {one.waiting} decisions" for one in pages if one.waiting],
        "trouble": [f"{one.name}: {one.trouble!r}" for one in pages if one.trouble],
    }
    counts, words = compare.counted(told)
    run = runs.current_run(db)
    figures = {
        "kills": sum(tally.kills.values()) + commands.count(),
        "kills_of_server": tally.kills["server"],
        "kills_of_worker": tally.kills["worker"],
        "kills_of_worker_while_training": sum(tally.worker_states[state] for state in TRAINS),
        **{f"kills_of_{name}": count for name, count in sorted(commands.killed.items())},
        **{f"ended_{name}": count for name, count in sorted(commands.ended.items())},
        "clock_jumps": tally.other["clock_jumps"],
        "stalls": tally.other["stalls"],
        "full_disks": tally.other["full_disks"],
        "seconds": round(took, 1),
        "pages": len(pages),
        "decisions_sent": len(sent.entries),
        "decisions_acknowledged": len(sent.acknowledged),
        "decisions_refused": len(sent.refused),
        "leases": hands.given,
        "runs": run.id if run else 0,
        **{f"broken_{name}": count for name, count in counts.items()},
    }
    for reason, count in Counter(sent.refused.values()).most_common(5):
        say(f"refused {count:,} times: {reason}")
    return {"figures": figures, "broken": words}


def _is_free(path: Path) -> bool:
    def taken() -> bool:
        try:
            with FileLock(path, timeout=0):
                return True
        except Timeout:
            return False

    try:  # a worker that lost its server has some seconds to end
        return wait_for(taken, f"the lock {path.name}", 15.0)
    except AnnotatorError:
        return False


def _make_project(folder: Path) -> Database:
    pictures = folder / "images"
    pictures.mkdir()
    chance = np.random.default_rng(0)
    for number in range(IMAGES):
        Image.fromarray(chance.integers(0, 256, (24, 32, 3), dtype=np.uint8)).save(pictures / f"{number:05d}.png")
    db = Database(folder / "project", create=True)
    registration.register(db, pictures, sorted(path.name for path in pictures.iterdir()))
    classes.add_classes(db, [(f"class {number + 1}", "") for number in range(CLASSES)])
    ids = np.array([image.id for image in images.all_images(db)])
    features = np.maximum(chance.normal(size=(len(ids), DIMENSIONS)), 0).astype(np.float16)
    regions = np.broadcast_to(features[:, None], (len(ids), REGIONS, DIMENSIONS))
    add_features(db.paths.features(DEFAULT_BACKBONE), ids, features, regions)
    given = [
        Decision(f"imported-{image_id}", "label", IMPORTER, "import", image_id, 1 + number % CLASSES, 1)
        for number, image_id in enumerate(ids[:IMPORTED].tolist())
    ]
    decisions.decide(db, given)
    _train(db)
    return db


def _train(db: Database) -> None:
    worker = Worker(db.paths.project)
    try:
        worker._train_or_note()
    finally:
        worker.close()

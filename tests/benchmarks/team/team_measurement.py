"""The phases: one person alone in a browser, then the whole team, while the worker trains without end."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from harness import projects
from harness.child_processes import LOCAL_ADDRESS, free_port, run_module, wait_for

from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.errors import AnnotatorError
from annotator.roles import Role
from annotator.store.classes import classes
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.ui.access.access_keys import build_request_headers, cookie_name
from annotator.ui.access.tokens import Tokens
from benchmarks.faults.guarantee_checks import find_broken_decisions, find_broken_tables
from benchmarks.faults.hands import Hands
from benchmarks.faults.simulated_pages import SentDecisions
from benchmarks.team.browsers import Visitor
from benchmarks.team.lease_expiry import LeaseExpiry
from benchmarks.team.teammates import GridTeammate, Teammate
from benchmarks.team.watch import ServerWatch

PROJECT_CLASSES = 20
ALONE_SECONDS = 60.0  # of one person's keys, before the others come
TEAMMATES_PER_GRID = 5  # of so many teammates one answers grids
VANISHING_SHARE = 0.1  # share of the teammates who close their laptop halfway
ENDING_SECONDS = 60.0  # in which everything is to be saved at the end


def measure(people: int, every: float, minutes: float, browsers: int, images: int | None = None) -> dict[str, Any]:
    """Measure a server while a team decides: answer times, decisions lost or broken, memory.

    Args:
        people: The number of people.
        every: Seconds between two decisions of a person.
        minutes: How long the team works.
        browsers: The number of people who use a real browser.
        images: The number of images of the project; None: so many that every decision is about another image.

    Returns:
        {"bench", "figures", "ratios", "said"}; said: up to five images that two people were given at once.

    Raises:
        AnnotatorError: There are more browsers than people, or no browser is installed.
    """
    if browsers > people:
        raise AnnotatorError(
            f"{browsers} of {people} people cannot be in front of a browser: there are too few people."
        )
    images = images or round(1.2 * people * 60 * (minutes + 1) / every) + 100 * people
    with scratch_folder() as folder:
        print_progress(f"Making a project of {images:,} images...")
        db = projects.make_project(folder, images, PROJECT_CLASSES)
        projects.save_noise_as_features(db)
        port = free_port()
        with run_module(
            "annotator", "serve", db.paths.project, "--auth", "invitation", "--no-browser", "--port", port
        ) as app:
            wait_for(lambda: app.poll() is not None or members.find_owner(db), "the server's first owner")
            names = [members.add(db, f"Person {number}", Role.ANNOTATOR, "bench").name for number in range(people)]
            with _keep_training(db):
                return _measure_team(db, port, names, people, every, minutes, browsers)


def _measure_team(
    db: Database, port: int, names: Sequence[str], people: int, every: float, minutes: float, browsers: int
) -> dict[str, Any]:
    address, sent, hands = f"http://{LOCAL_ADDRESS}:{port}", SentDecisions(), Hands()
    pid = _find_server_pid(db)
    class_ids = [class_.id for class_ in classes.load_active_classes(db)]
    teammates = [
        (GridTeammate if number % TEAMMATES_PER_GRID == TEAMMATES_PER_GRID - 1 else Teammate)(
            number, name, port, _build_headers(db, address, port, name), class_ids, every, sent, hands
        )
        for number, name in enumerate(names[browsers:])
    ]
    visitors = [
        Visitor(number, address, _build_cookie(db, port, name), every, sent)
        for number, name in enumerate(names[:browsers])
    ]
    figures: dict[str, float | None] = {"people": people, "browsers": browsers, "seconds_a_decision": every}
    before = {uuid for (uuid,) in db.tuples("SELECT uuid FROM decision")}  # one of each class

    if visitors:
        alone = visitors[0]
        alone.start()
        alone.ready.wait(180)
        print_progress("One person alone...")
        time.sleep(min(ALONE_SECONDS, 60 * minutes))
        alone_milliseconds, alone.milliseconds = alone.milliseconds, []

    for visitor in visitors[1:]:
        visitor.start()
    for visitor in visitors[1:]:
        visitor.ready.wait(180)
    print_progress(f"{people} people for {minutes:g} minutes...")
    began, busy = time.monotonic(), time.process_time()
    watch = ServerWatch(pid)
    for teammate in teammates:
        teammate.start()
    time.sleep(30 * minutes)
    freed = LeaseExpiry(db, hands, teammates[: int(VANISHING_SHARE * len(teammates))])
    time.sleep(30 * minutes)
    for one in (*teammates, *visitors):
        one.end()
    for one in (*teammates, *visitors):
        one.join(ENDING_SECONDS)
    seconds = time.monotonic() - began
    figures |= watch.end() | {
        "load_generator_processors": (time.process_time() - busy) / seconds,
        "minutes": seconds / 60,
    }
    figures |= _summarize_requests(teammates)
    ratios: dict[str, float] = {}
    if visitors:
        together = [value for visitor in visitors for value in visitor.milliseconds]
        figures |= _compute_percentiles("key_alone", alone_milliseconds) | _compute_percentiles(
            "key_together", together
        )
        ratios = {
            f"key_together_over_alone_{name}": float(
                np.percentile(together, at) / np.percentile(alone_milliseconds, at)
            )
            for name, at in (("p50", 50), ("p95", 95))
        }
    figures |= {
        "decisions_stored": db.value("SELECT count(*) FROM decision") - len(before),
        "decisions_a_second": sum(len(sent.entries[uuid].get("cells", [0])) for uuid in sent.acknowledged) / seconds,
        "images_handed_out": hands.handed_out_count,
        "in_two_hands": len(hands.double_holdings),
        "refused": len(sent.refused),
        "seconds_until_freed": freed.wait_for_seconds(),
    }
    broken = find_broken_decisions(db, sent)
    broken["from_nobody"] = [uuid for uuid in broken["from_nobody"] if uuid not in before]
    figures |= {f"decisions_{kind}": len(cases) for kind, cases in broken.items()}
    figures["tables_broken"] = len(find_broken_tables(db))
    trouble = [str(one.trouble) for one in (*teammates, *visitors) if one.trouble]
    if trouble:
        raise AnnotatorError(f"{len(trouble)} of {people} people met an error of this benchmark: {trouble[0]}")
    return {
        "bench": "team",
        "figures": figures,
        "ratios": ratios,
        "said": [str(case) for case in hands.double_holdings[:5]],
    }


def _summarize_requests(teammates: Sequence[Teammate]) -> dict[str, float | None]:
    figures: dict[str, float | None] = {}
    for what in ("work", "picture", "decision"):
        figures |= _compute_percentiles(
            what, [1000 * value for one in teammates for value in one.request_figures.seconds[what]]
        )
    statuses = (
        sum((one.request_figures.statuses for one in teammates), start=type(teammates[0].request_figures.statuses)())
        if teammates
        else {}
    )
    return figures | {
        "answers_with_an_error": sum(statuses.values()),
        "requests_unanswered": sum(one.request_figures.unanswered for one in teammates),
        "turns_without_work": sum(one.request_figures.without_work for one in teammates),
    }


def _compute_percentiles(figure: str, milliseconds: Sequence[float]) -> dict[str, float | None]:
    percents = {"p50": 50, "p95": 95, "p99": 99}
    return {
        f"{figure}_{name}_ms": float(np.percentile(milliseconds, at)) if len(milliseconds) else None
        for name, at in percents.items()
    }


@contextmanager
def _keep_training(db: Database) -> Iterator[None]:
    """Run a worker that trains without end, for the duration of the block."""
    over = threading.Event()

    def request_trainings() -> None:
        while not over.wait(0.2):
            if not jobs.is_training_requested(db):
                jobs.request_training(db)

    asking = threading.Thread(target=request_trainings, daemon=True)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()


def _find_server_pid(db: Database) -> int:
    own = str(db.paths.project).encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(bytes(1))
        except OSError:
            continue
        if b"serve" in words and own in words:
            return int(path.parent.name)
    raise AnnotatorError("The process of the server is not listed in /proc, which this benchmark reads (Linux has it).")


def _build_cookie(db: Database, port: int, name: str) -> tuple[str, str]:
    member = members.find_member(db, name)
    return cookie_name(port), Tokens(db.paths.secret).create_session_cookie(port, member.id)


def _build_headers(db: Database, address: str, port: int, name: str) -> dict[str, str]:
    return build_request_headers(db.paths.project, address, name, is_member=True) | {
        "cookie": "=".join(_build_cookie(db, port, name))
    }

"""The phases: one person alone in a browser, then the whole team, while the worker trains without end."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from annotator.benchmark.faults.compare import decisions_broken, tables_broken
from annotator.benchmark.faults.hands import Hands
from annotator.benchmark.faults.people import Sent
from annotator.benchmark.harness import projects
from annotator.benchmark.harness.processes import ADDRESS, free_port, python, say, wait_for
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.benchmark.team.browsers import Visitor
from annotator.benchmark.team.freed import Freed
from annotator.benchmark.team.teammates import GridTeammate, Teammate
from annotator.benchmark.team.watch import Watch
from annotator.errors import AnnotatorError
from annotator.roles import Role
from annotator.store.classes import classes
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.ui.access.access_keys import cookie_name, headers_for
from annotator.ui.access.tokens import Tokens

CLASSES = 20
ALONE_SECONDS = 60.0  # of one person's keys, before the others come
GRIDS = 5  # of so many teammates one answers grids
VANISHING = 0.1  # share of the teammates who close their laptop halfway
ENDING = 60.0  # seconds in which everything is to be saved at the end


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
        say(f"Making a project of {images:,} images...")
        db = projects.make_project(folder, images, CLASSES)
        projects.save_noise_as_features(db)
        port = free_port()
        with python(
            "annotator", "serve", db.paths.project, "--auth", "invitation", "--no-browser", "--port", port
        ) as app:
            wait_for(lambda: app.poll() is not None or members.owner(db), "the server's first owner")
            names = [members.add(db, f"Person {number}", Role.ANNOTATOR, "bench").name for number in range(people)]
            with _training(db):
                return _result(db, port, names, people, every, minutes, browsers)


def _result(
    db: Database, port: int, names: Sequence[str], people: int, every: float, minutes: float, browsers: int
) -> dict[str, Any]:
    address, sent, hands = f"http://{ADDRESS}:{port}", Sent(), Hands()
    pid = _pid_of_server(db)
    class_ids = [class_.id for class_ in classes.all_classes(db)]
    teammates = [
        (GridTeammate if number % GRIDS == GRIDS - 1 else Teammate)(
            number, name, port, _headers(db, address, port, name), class_ids, every, sent, hands
        )
        for number, name in enumerate(names[browsers:])
    ]
    visitors = [
        Visitor(number, address, _cookie(db, port, name), every, sent) for number, name in enumerate(names[:browsers])
    ]
    figures: dict[str, float | None] = {"people": people, "browsers": browsers, "seconds_a_decision": every}
    before = {uuid for (uuid,) in db.tuples("SELECT uuid FROM decision")}  # one of each class

    if visitors:
        alone = visitors[0]
        alone.start()
        alone.ready.wait(180)
        say("One person alone...")
        time.sleep(min(ALONE_SECONDS, 60 * minutes))
        alone_milliseconds, alone.milliseconds = alone.milliseconds, []

    for visitor in visitors[1:]:
        visitor.start()
    for visitor in visitors[1:]:
        visitor.ready.wait(180)
    say(f"{people} people for {minutes:g} minutes...")
    began, busy = time.monotonic(), time.process_time()
    watch = Watch(pid)
    for teammate in teammates:
        teammate.start()
    time.sleep(30 * minutes)
    freed = Freed(db, hands, teammates[: int(VANISHING * len(teammates))])
    time.sleep(30 * minutes)
    for one in (*teammates, *visitors):
        one.end()
    for one in (*teammates, *visitors):
        one.join(ENDING)
    seconds = time.monotonic() - began
    figures |= watch.end() | {
        "load_generator_processors": (time.process_time() - busy) / seconds,
        "minutes": seconds / 60,
    }
    figures |= _of_requests(teammates)
    ratios: dict[str, float] = {}
    if visitors:
        together = [value for visitor in visitors for value in visitor.milliseconds]
        figures |= _percentiles("key_alone", alone_milliseconds) | _percentiles("key_together", together)
        ratios = {
            f"key_together_over_alone_{name}": float(
                np.percentile(together, at) / np.percentile(alone_milliseconds, at)
            )
            for name, at in (("p50", 50), ("p95", 95))
        }
    figures |= {
        "decisions_stored": db.value("SELECT count(*) FROM decision") - len(before),
        "decisions_a_second": sum(len(sent.entries[uuid].get("cells", [0])) for uuid in sent.acknowledged) / seconds,
        "images_handed_out": hands.given,
        "in_two_hands": len(hands.twice),
        "refused": len(sent.refused),
        "seconds_until_freed": freed.seconds(),
    }
    broken = decisions_broken(db, sent)
    broken["from_nobody"] = [uuid for uuid in broken["from_nobody"] if uuid not in before]
    figures |= {f"decisions_{kind}": len(cases) for kind, cases in broken.items()}
    figures["tables_broken"] = len(tables_broken(db))
    trouble = [str(one.trouble) for one in (*teammates, *visitors) if one.trouble]
    if trouble:
        raise AnnotatorError(f"{len(trouble)} of {people} people met an error of this benchmark: {trouble[0]}")
    return {"bench": "team", "figures": figures, "ratios": ratios, "said": [str(case) for case in hands.twice[:5]]}


def _of_requests(teammates: Sequence[Teammate]) -> dict[str, float | None]:
    figures: dict[str, float | None] = {}
    for what in ("work", "picture", "decision"):
        figures |= _percentiles(what, [1000 * value for one in teammates for value in one.measured.seconds[what]])
    statuses = (
        sum((one.measured.statuses for one in teammates), start=type(teammates[0].measured.statuses)())
        if teammates
        else {}
    )
    return figures | {
        "answers_with_an_error": sum(statuses.values()),
        "requests_unanswered": sum(one.measured.unanswered for one in teammates),
        "turns_without_work": sum(one.measured.without_work for one in teammates),
    }


def _percentiles(what: str, milliseconds: Sequence[float]) -> dict[str, float | None]:
    percents = {"p50": 50, "p95": 95, "p99": 99}
    return {
        f"{what}_{name}_ms": float(np.percentile(milliseconds, at)) if len(milliseconds) else None
        for name, at in percents.items()
    }


@contextmanager
def _training(db: Database) -> Iterator[None]:
    """Run a worker that trains without end, for the duration of the block."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.2):
            if not jobs.training_asked(db):
                jobs.ask_training(db)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()


def _pid_of_server(db: Database) -> int:
    own = str(db.paths.project).encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(bytes(1))
        except OSError:
            continue
        if b"serve" in words and own in words:
            return int(path.parent.name)
    raise AnnotatorError("The process of the server is not listed in /proc, which this benchmark reads (Linux has it).")


def _cookie(db: Database, port: int, name: str) -> tuple[str, str]:
    member = members.member_named(db, name)
    return cookie_name(port), Tokens(db.paths.secret).session_cookie(port, member.id)


def _headers(db: Database, address: str, port: int, name: str) -> dict[str, str]:
    return headers_for(db.paths.project, address, name, of_member=True) | {"cookie": "=".join(_cookie(db, port, name))}

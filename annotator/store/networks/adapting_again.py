"""The advice to adapt the network again, once the project has twice as many answers as the last time.

The advice is only shown, and followed by the worker where somebody has asked for that (setting `adapting_again`). An
automatic start is stored with the number of answers at that moment, so that one that fails is not started again at
once.
"""

from dataclasses import dataclass

from annotator.shares import counted
from annotator.store.database.database import Database
from annotator.store.labels import counts as overview
from annotator.store.networks import adaptation as adapting
from annotator.store.networks import adapted

AUTOMATIC, STARTED_AT = "adapting_again", "adapting_again_started_at"
TIMES = 2  # the answers of the last time


@dataclass(frozen=True)
class Again:
    """The reason to adapt the network again.

    Attributes:
        network: The newest adapted network.
        before: The project's answers when that network was made.
        answers: The project's answers now.
    """

    network: str
    before: int
    answers: int

    @property
    def sentence(self) -> str:
        """Return the reason as a sentence."""
        return (
            f"There are {counted(self.answers, 'answer')} now, and {self.network} was made from {self.before:,}: the "
            "network can be adapted again."
        )


def answers(db: Database) -> int:
    """Return the number of the project's answers, present and absent."""
    counts = overview.labels_by_state(db)
    return counts["present"] + counts["absent"]


def again(db: Database) -> Again | None:
    """Return the reason to adapt again; None where there is none.

    None where too few answers were added since, no network was adapted yet, or an adapting is under way.
    """
    networks = adapted.networks(db)
    if not networks or adapting.running(db) or adapting.wanted(db) or adapted.next_backbone(db):
        return None
    newest, now = networks[-1], answers(db)
    before = newest.known_answers or newest.answers
    return Again(newest.name, before, now) if now >= TIMES * before else None


def is_automatic(db: Database) -> bool:
    """Return whether the worker adapts again without being asked."""
    return db.setting(AUTOMATIC, False) is True


def set_automatic(db: Database, wanted: bool) -> None:
    """Turn automatic re-adaptation by the worker on or off."""
    db.set_setting(AUTOMATIC, wanted)


def start_if_due(db: Database) -> None:
    """Ask for an adapting, where one is due and automatic re-adaptation is on.

    Nothing is asked for after a pause, nor again before the answers have doubled since the last automatic start.
    """
    due = again(db) if is_automatic(db) and adapting.result(db).get("kind") != "paused" else None
    if due is None:
        return
    started_at = db.setting(STARTED_AT, 0)
    if isinstance(started_at, int) and due.answers < TIMES * started_at:
        return
    db.set_setting(STARTED_AT, due.answers)
    adapting.want(db, "run")

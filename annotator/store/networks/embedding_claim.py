"""Progress of `annotator embed`, which only one process may run at a time."""

from dataclasses import dataclass

from annotator.store.database.database import Database
from annotator.store.database.process_claims import ProcessClaim
from annotator.store.disk.processes import Claim

STATE_SETTING = "embedding"


@dataclass(frozen=True)
class EmbeddingState(Claim):
    """The progress that a running `annotator embed` reports, and its claim that no other process embeds."""

    on: str  # as it was asked for: "local", "ray", "ray://..."
    done: int = 0  # images with features now
    of: int = 0
    images_a_second: float = 0.0  # recently, all workers together
    workers: int = 0
    nodes: tuple[tuple[str, float], ...] = ()  # name of a machine, images a second
    note: str = ""  # the reason for a delay, such as a machine that is left out

    def __post_init__(self):
        """Convert lists read from JSON to tuples."""
        object.__setattr__(self, "nodes", tuple((str(name), float(rate)) for name, rate in self.nodes))

    @property
    def seconds_left(self) -> float | None:
        """Return the remaining seconds, or None if the rate is unknown."""
        return (self.of - self.done) / self.images_a_second if self.images_a_second > 0 else None


_EMBEDDING_CLAIM = ProcessClaim(STATE_SETTING, EmbeddingState)
report, release, get_running = _EMBEDDING_CLAIM.report, _EMBEDDING_CLAIM.release, _EMBEDDING_CLAIM.get_running


def claim(db: Database, on: str) -> EmbeddingState:
    """Reserve the embedding for this process. Raises AlreadyRunning if another process has it."""

    def describe_running(other: EmbeddingState) -> str:
        return (
            f"The images of {db.paths.project} are being embedded already: on {other.on}, by process "
            f"{other.pid} of {other.host}, {other.done:,} of {other.of:,} so far.\n"
            "    Wait for it, or end that process: what it has embedded is kept, and the next one goes on."
        )

    return _EMBEDDING_CLAIM.take(db, describe_running, on=on)

"""What the processes of a training on a cluster say of themselves. Its process loads nothing: it is there at once."""

from typing import Any


class Board:
    """An actor: what the processes say of themselves, for the process that waits."""

    def __init__(self):
        self._said: dict[str, Any] = {
            "doing": "waiting for the cluster",
            "done": 0,
            "of": 0,
            "workers": 0,
            "refusal": "",
        }

    def say(self, **facts: Any) -> None:
        """Replace some of it."""
        self._said |= facts

    def said(self) -> dict[str, Any]:
        """All of it: doing, done, of, workers; refusal: why it cannot be done, "" while it can."""
        return self._said

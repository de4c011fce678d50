"""How many requests one person may cause: far more than any page does, far fewer than would starve the others."""

import time
from collections import OrderedDict
from collections.abc import Hashable

BURST = 3000  # requests at once; a page of grids fetches hundreds of pictures when it opens
A_SECOND = 150.0  # that come back
MOST_KNOWN = 10_000  # people, and addresses of people who are not signed in; the longest unseen are forgotten


class Allowance:
    """A token bucket for each person."""

    def __init__(self, burst: float = BURST, a_second: float = A_SECOND):
        self.burst, self.a_second = burst, a_second
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, who: Hashable) -> bool:
        """Count one request; whether it is within what this person may cause."""
        now = time.monotonic()
        left, at = self._left.pop(who, (self.burst, now))
        left = min(self.burst, left + (now - at) * self.a_second)
        is_within = left >= 1
        self._left[who] = (left - is_within, now)
        if len(self._left) > MOST_KNOWN:
            self._left.popitem(last=False)
        return is_within

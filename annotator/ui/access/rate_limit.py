"""Rate limits per person, far above what pages need and low enough to protect others."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Hashable

BURST_REQUESTS = 3000  # requests at once; a page of grids fetches hundreds of pictures when it opens
REQUESTS_PER_SECOND = 150.0  # requests regained per second
# people, programs, and addresses of visitors not signed in; the longest unseen are forgotten
MAX_KNOWN_CLIENTS = 10_000


class RateLimiter:
    """A rate limiter: a token bucket per person, program or address. Size and refill rate default to requests'."""

    def __init__(self, burst: float | None = None, per_second: float | None = None) -> None:
        self._burst = BURST_REQUESTS if burst is None else burst
        self._a_second = REQUESTS_PER_SECOND if per_second is None else per_second
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def consume(self, client: Hashable) -> bool:
        """Consume one request, and return False over the limit."""
        left, now = self._refill(client)
        is_within = left >= 1
        self._store_level(client, left - is_within, now)
        return is_within

    def charge(self, client: Hashable, cost: float) -> float:
        """Charge work that is done anyway, and return the seconds until it is within the limit."""
        left, now = self._refill(client)
        self._store_level(client, left - cost, now)
        return max(0.0, cost - left) / self._a_second

    def _refill(self, client: Hashable) -> tuple[float, float]:
        now = time.monotonic()
        left, at = self._left.pop(client, (self._burst, now))
        return min(self._burst, left + (now - at) * self._a_second), now

    def _store_level(self, client: Hashable, level: float, now: float) -> None:
        self._left[client] = (level, now)
        if len(self._left) > MAX_KNOWN_CLIENTS:
            self._left.popitem(last=False)


def get_network(address: str) -> str:
    """Return the network by which a signed-out client is limited.

    This is the IPv4 address, the IPv6 /64 network (one machine has many addresses), or 64 characters of other text.
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:  # a proxy may send any text
        return address[:64]
    if isinstance(known, ipaddress.IPv4Address) or known.ipv4_mapped:
        return str(known if isinstance(known, ipaddress.IPv4Address) else known.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(known), 64), strict=False))

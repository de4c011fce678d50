"""How many requests one person may cause: far more than any page does, far fewer than would starve the others."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Hashable

BURST = 3000  # requests at once; a page of grids fetches hundreds of pictures when it opens
A_SECOND = 150.0  # that come back
MOST_KNOWN = 10_000  # people, programs, and addresses of whoever is not signed in; the longest unseen are forgotten


class Allowance:
    """A token bucket for each person, program or address."""

    def __init__(self) -> None:
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, who: Hashable) -> bool:
        """Count one request; whether it is within what this person may cause."""
        now = time.monotonic()
        left, at = self._left.pop(who, (BURST, now))
        left = min(BURST, left + (now - at) * A_SECOND)
        is_within = left >= 1
        self._left[who] = (left - is_within, now)
        if len(self._left) > MOST_KNOWN:
            self._left.popitem(last=False)
        return is_within


def network_of(address: str) -> str:
    """What somebody who is not signed in is limited by: their IPv4 address, or the first 64 bits of an IPv6 one, as a
    machine has as many addresses as it likes in that network."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:  # whatever a proxy said
        return address[:64]
    if isinstance(known, ipaddress.IPv4Address) or known.ipv4_mapped:
        return str(known if isinstance(known, ipaddress.IPv4Address) else known.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(known), 64), strict=False))

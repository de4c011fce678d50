"""Whoever asks far more than a page does is told to wait, be it a person, a program or nobody known; nobody else is."""

import http.client
import itertools
from collections.abc import Iterable, Iterator

import pytest
from harness.member_requests import FEW, NOBODY, WITH_FEW, ask, cookie, served_to_roles
from harness.served import Served, until

from annotator.store.database.database import Database
from annotator.store.people import access_tokens, members
from annotator.ui.access import rate_limit
from annotator.ui.access.rate_limit import BURST_REQUESTS, MAX_KNOWN_CLIENTS, RateLimiter, get_network

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Served]:
    python = ("-P", "-c", WITH_FEW, "serve", "--auth", "invitation")
    with served_to_roles(tmp_path_factory.mktemp("allowance"), python) as served:
        yield served


def until_refused(
    served: Served, path: str, headers: Iterable[dict[str, str]], source: str = "127.0.0.1", method: str = "GET"
) -> tuple[int, int]:
    """How many requests from this address of this machine are answered, with these headers in turn, until one is told
    to wait; and the status of the next one."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30, source_address=(source, 0))

    def status(sent: dict[str, str]) -> int:
        connection.request(method, path, headers=sent)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    for count, sent in enumerate(itertools.islice(itertools.cycle(headers), 9 * FEW)):
        if status(sent) == 429:
            return count, status(sent)
    raise AssertionError(f"{9 * FEW} requests for {path} were answered")


def test_rate_limit_refuses_one_member_and_still_serves_others(shared):
    members.add(Database(shared.project), "Hasty", "guest", "test")
    until(lambda: ask(shared, "Hasty", "/api/items", {"images": [1]})[0] == 200, pause=0.5)
    count, after = until_refused(shared, "/api/thumb/1", [{"cookie": cookie(shared, "Hasty")}])
    assert count > FEW / 2 and after == 429
    assert ask(shared, "guest", "/api/items", {"images": [1]})[0] == 200


def test_rate_limit_counts_valid_tokens_separately_and_invalid_tokens_by_ip_address(shared):
    hasty, patient = (
        {"authorization": f"Bearer {access_tokens.make(Database(shared.project), name, 'metrics', 'test')}"}
        for name in ("hasty", "patient")
    )
    assert ask(shared, NOBODY, "/metrics", **hasty)[0] == 200
    count, after = until_refused(shared, "/metrics", [hasty], method="POST")
    assert count > FEW / 2 and after == 429
    assert ask(shared, NOBODY, "/metrics", **patient)[0] == 200

    invented = ({"authorization": f"Bearer {number}"} for number in range(9 * FEW))
    count, after = until_refused(shared, "/metrics", invented, "127.0.0.2")
    assert count > FEW / 2 and after == 429
    assert ask(shared, NOBODY, "/metrics", **patient)[0] == 200


def test_rate_limit_of_the_ready_route_counts_by_ip_address(shared):
    count, after = until_refused(shared, "/ready", [{}], "127.0.0.3")
    assert count > FEW / 2 and after == 429
    assert ask(shared, NOBODY, "/ready")[0] == ask(shared, "guest", "/api/items", {"images": [1]})[0] == 200


def test_rate_limiter_allows_a_burst_of_requests_and_forgets_idle_clients(monkeypatch):
    assert sum(RateLimiter().consume("x") for _ in range(2 * BURST_REQUESTS)) >= BURST_REQUESTS >= 1000
    monkeypatch.setattr(rate_limit, "BURST_REQUESTS", 1)
    monkeypatch.setattr(rate_limit, "REQUESTS_PER_SECOND", 0)
    few = RateLimiter()
    assert few.consume("hasty") and few.consume("early")
    for number in range(MAX_KNOWN_CLIENTS):
        assert few.consume(number) and not few.consume("hasty"), "whoever goes on asking is not forgotten"
    assert few.consume("early"), "it was forgotten"


def test_rate_limit_counts_ipv6_addresses_by_network():
    one, other, far = "2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"
    assert get_network(one) == get_network(other) != get_network(far)
    assert get_network("::ffff:10.0.0.1") == get_network("10.0.0.1") != get_network("10.0.0.2")
    assert len(get_network("x" * 60_000)) == 64

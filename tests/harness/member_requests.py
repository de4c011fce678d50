"""A project served to members of each role, and their requests."""

import http.client
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from annotator.roles import Role
from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.ui.access.access_keys import cookie_name
from annotator.ui.access.tokens import Tokens
from harness.person import served_photos
from harness.served import Served, until

TEAM = ("-P", "-m", "annotator", "serve", "--auth", "invitation")
NOBODY = "nobody"


@contextmanager
def served_to_roles(folder: Path, python: Sequence[str] = TEAM) -> Iterator[Served]:
    """A project served to its members, one of each role, called like it."""
    with served_photos(folder, 6, ("fox", "heron"), size=(96, 72), python=python) as served:
        until(lambda: "Open this address" in served.log.read_text())
        for role in Role:
            members.add(Database(served.project), role, role, "test")
        # Roles are looked up once a second.
        until(lambda: ask(served, "owner", "/api/items", {"images": [1]})[0] == 200)
        yield served


def cookie(served: Served, name: str) -> str:
    db = Database(served.project)
    session = Tokens(db.paths.secret).create_session_cookie(served.port, members.find_member(db, name).id)
    return f"{cookie_name(served.port)}={session}"


def ask(
    served: Served,
    name: str,
    path: str,
    body: dict | None = None,
    page_of: str | None = None,
    method: str = "GET",
    **headers: str,
) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of a request in somebody's session; a POST where there is a body.

    page_of    whose page it comes from, if not their own
    """
    given = {"cookie": cookie(served, name)} if name != NOBODY else {}
    given |= {"x-annotator-token": Tokens(Database(served.project).paths.secret, of_members=True).mint(page_of or name)}
    given |= {key.replace("_", "-"): value for key, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
    if body is None:
        connection.request(method, path, headers=given)
    else:
        connection.request("POST", path, json.dumps(body), given | {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read().decode("latin-1")


def browser_cookie(served: Served, name: str) -> dict[str, str]:
    key, value = cookie(served, name).split("=", 1)
    return {"name": key, "value": value, "url": served.address}


FEW = 200
# So that it is used up quickly however slow this machine is.
WITH_FEW = f"""
from annotator.ui.access import rate_limit as allowance
allowance.BURST_REQUESTS, allowance.REQUESTS_PER_SECOND = {FEW}, 0.5
from annotator.__main__ import main
main()
"""

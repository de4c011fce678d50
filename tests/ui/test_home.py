"""Several projects behind one address: each visitor sees those in which they have a role, and nothing of the others."""

import http.client
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import draw
from get_caddy import proxy
from harness.child_processes import free_port
from harness.served import until
from harness.start_page import Browser, answers, at_home, served_by

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.ui.access.serving_modes import parse_access
from annotator.ui.home import hosted_projects
from annotator.ui.home.home_server import build_caddyfile, prepare_projects

pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path) -> Path:
    """Two projects in a folder."""
    for name in ("birds", "mammals"):
        draw(tmp_path / f"photos of {name}" / "a.jpg", (), seed=1)
        (tmp_path / "classes.txt").write_text("fox\n")
        set_up_project(
            tmp_path / "all" / name, images_folder=tmp_path / f"photos of {name}", class_file=tmp_path / "classes.txt"
        )
    return tmp_path / "all"


@pytest.fixture
def team(folder, tmp_path) -> Iterator[tuple[str, list[hosted_projects.HostedProject]]]:
    """The address of the start page behind Caddy, and the places."""
    front, port = free_port(), free_port()
    address = f"http://127.0.0.1:{front}"
    places = prepare_projects([folder], port)
    config = tmp_path / "Caddyfile"
    config.write_text("{\n\tadmin off\n}\n" + build_caddyfile(places, parse_access("invitation", port, url=address)))
    words = ["--auth", "invitation", "--url", address, "--port", port, folder]
    with at_home(*words), proxy(config):
        until(lambda: answers(front) and all(answers(place.port) for place in places))
        until(lambda: all(members.find_owner(place.db) for place in places))
        yield address, places


def test_start_page_lists_only_projects_in_which_the_visitor_has_a_role(team):
    address, (birds, mammals) = team
    stranger = Browser().get(f"{address}/")
    assert stranger[0] == 200 and "birds" not in stranger[1] and "mammals" not in stranger[1]

    members.add(birds.db, "Ann", "annotator", "test")
    secret = members.create_link(birds.db, "Ann", "test")
    ann = Browser()
    assert ann.get(f"{address}/birds/?invitation={secret}")[0] == 200
    status, text = ann.get(f"{address}/")
    assert status == 200 and f'href="{address}/birds/"' in text and "0 of 1 image complete · annotator" in text
    assert closed_to_other_sites(birds.port - 1, "/", ann)
    assert "mammals" not in text and ann.get(f"{address}/mammals/")[0] == 403

    members.add(mammals.db, "Ann", "reviewer", "test")
    link = members.create_link(mammals.db, "Ann", "test")
    assert ann.get(f"{address}/mammals/?invitation={link}")[0] == 200
    text = ann.get(f"{address}/")[1]
    assert text.index("birds") < text.index("mammals") and "· reviewer" in text
    assert ann.get(f"{address}/birds/")[0] == 200, "the session of one project leaves that of the other alone"

    members.set_role(birds.db, "Ann", "none", "test")
    assert "birds" not in ann.get(f"{address}/")[1]
    ann.get(f"{address}/mammals/sign-out")
    assert "mammals" not in ann.get(f"{address}/")[1]


def asked(port: int, path: str, **headers: str) -> tuple[int, str]:
    """Status and text of one request, straight to the server."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def closed_to_other_sites(port: int, path: str, cookies: Browser) -> bool:
    """Whether a page of another site learns nothing there, with this visitor's cookies."""
    cookie = "; ".join(f"{name}={value}" for name, (_, value) in cookies.cookies.items())
    here = f"127.0.0.1:{port}"
    sites = [{"origin": origin} for origin in ("https://evil.example", f"https://{here}", "http://127.0.0.1:1", "null")]
    sites += [{"host": "evil.example"}, {"host": "evil.example", "origin": "http://evil.example"}]
    answers = [asked(port, path, cookie=cookie, **site) for site in sites]
    return all(status == 403 and "birds" not in text for status, text in answers)


@pytest.mark.slow
def test_start_page_rate_limits_each_visitor_separately(team):
    _, (birds, _) = team
    connection = http.client.HTTPConnection("127.0.0.1", birds.port - 1, timeout=120)

    def status(visitor: str) -> int:
        connection.request("GET", "/", headers={"x-forwarded-for": visitor})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    count = next(count for count in range(20_000) if status("10.0.0.1") == 429)
    assert count > 1000 and status("10.0.0.2") == 200


@pytest.mark.slow
def test_start_page_server_restarts_a_killed_project_server_and_stops_all_when_it_ends(folder, tmp_path):
    port = free_port()
    places = prepare_projects([folder], port)
    with at_home("--port", port, folder) as home:
        until(lambda: all(answers(place.port) for place in places))
        first = served_by(places[0].path)
        os.kill(first, signal.SIGKILL)
        until(lambda: served_by(places[0].path) not in (None, first) and answers(places[0].port))
        link = until(lambda: next((line for line in home.stdout if "?key=" in line), None)).strip()
        browser = Browser()
        status, text = browser.get(link)
        assert status == 200 and "0 of 1 image complete" in text and "birds" in text and "mammals" in text
        assert browser.get(f"http://127.0.0.1:{port}/open/birds")[0] == 200
        assert Browser().get(f"http://127.0.0.1:{port}/")[0] == 403, "without the key nobody is let in"
        assert all(closed_to_other_sites(port, path, browser) for path in ("/", "/open/birds"))
        home.kill()
        until(lambda: not any(served_by(place.path) for place in places))


def test_project_search_reports_projects_that_cannot_be_served_and_missing_folders(folder, tmp_path):
    (folder / "birds").rename(folder / "birds & bees")
    with sqlite(folder / "mammals") as sql:
        sql.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('annotator', 'step_999', '2030')"
        )
    found = hosted_projects.find_projects([folder])
    assert [bool(place.trouble) for place in found.all] == [True, True] and found.openable == []
    assert "cannot be part of an address" in found.all[0].trouble and "newer" in found.all[1].trouble
    assert hosted_projects.find_projects([tmp_path / "photos of birds"]).all == []
    with pytest.raises(AnnotatorError, match="no folder"):
        hosted_projects.find_projects([tmp_path / "nowhere"])


def test_start_page_hides_names_of_unservable_projects_from_owners_of_other_projects(folder, tmp_path):
    with sqlite(folder / "mammals") as sql:
        sql.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('annotator', 'step_999', '2030')"
        )
    port = free_port()
    (birds,) = [place for place in prepare_projects([folder], port) if place.db]
    members.add(birds.db, "Ann", "owner", "test")
    secret = members.create_link(birds.db, "Ann", "test")
    with at_home("--auth", "invitation", "--url", f"http://127.0.0.1:{port}", "--port", port, folder):
        until(lambda: answers(port) and answers(birds.port))
        ann = Browser()
        assert ann.get(f"http://127.0.0.1:{birds.port}/birds/?invitation={secret}")[0] == 200
        copied = Browser()
        copied.cookies = dict(ann.cookies)
        text = ann.get(f"http://127.0.0.1:{port}/")[1]
        assert "birds" in text and "· owner" in text
        assert "mammals" not in text and "cannot be served" not in text
        ann.get(f"http://127.0.0.1:{birds.port}/birds/sign-out")
        assert "birds" not in copied.get(f"http://127.0.0.1:{port}/")[1], "whoever has a copy has signed out, too"


def test_serving_two_projects_of_equal_name_is_refused_and_a_renamed_one_keeps_its_port(folder, tmp_path):
    (tmp_path / "more").mkdir()
    (folder / "birds").rename(tmp_path / "more" / "mammals")
    with pytest.raises(AnnotatorError, match="Two projects are called mammals"):
        hosted_projects.find_projects([folder, tmp_path / "more"])
    (tmp_path / "more" / "mammals").rename(folder / "birds")
    first = {place.name: place.port for place in prepare_projects([folder], 20000)}
    (folder / "birds").rename(folder / "zebras")
    assert {place.name: place.port for place in prepare_projects([folder], 20000)} == {
        "zebras": first["birds"],
        "mammals": first["mammals"],
    }


@contextmanager
def sqlite(project: Path):
    import sqlite3

    connection = sqlite3.connect(Database(project).paths.database)
    try:
        with connection:
            yield connection
    finally:
        connection.close()

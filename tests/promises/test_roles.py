"""What each role may ask of the server that serves a project to its members, and whose session a request is in."""

import itertools
import json
import time
from collections.abc import Iterator

import pytest
import websockets.sync.client
from harness.member_requests import NOBODY, ask, browser_cookie, cookie, served_to_roles
from harness.person import (
    on_screen,
    open_page,
    wait_for_another,
    wait_for_picture,
    wait_until_drawn,
    wait_until_fetched,
)
from harness.served import Served, until
from harness.short_forms import mark_slow_after
from playwright.sync_api import Page, expect
from websockets.exceptions import InvalidStatus

from annotator.records import Decision
from annotator.roles import Role
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.people import access_tokens, members, renaming
from annotator.ui.access.access_keys import SERVED_TO_TEAM_SETTING, cookie_name
from annotator.ui.access.serving_modes import parse_access
from annotator.ui.access.sessions import Sessions
from annotator.ui.access.tokens import Tokens

pytestmark = pytest.mark.process

DECISION = {"uuid": "decision-0", "action": "label", "image": 1, "class": 1, "state": 1, "source": "click"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Served]:
    with served_to_roles(tmp_path_factory.mktemp("roles")) as served:
        yield served


# Every route of the app: what a request to it needs, and the status that whoever has it gets.
WORK = {"mode": "annotate", "holder": "h", "have": [], "want": 1}
GRID = {"holder": "h", "class": 1, "size": 4, "have": [], "want": 1}
AUTOPILOT = ("/api/autopilot", {"holder": "h", "have": [], "want": 1})
ROUTES = {
    "/api/work": ("annotator", 200, WORK),
    "/api/grid": ("annotator", 200, GRID),
    "/api/work?": ("reviewer", 200, WORK | {"filter": {"kind": "annotator_disagreements"}, "mode": "review"}),
    "/api/autopilot": ("annotator", 200, AUTOPILOT[1]),
    "/api/autopilot/audit": ("reviewer", 200, {}),
    "/api/export": ("reviewer", 409, {}),  # before this person's first one
    "/api/export/state": ("reviewer", 200, {}),
    "/api/answering": ("annotator", 200, {"mode": "one"}),
    "/api/rule_out": ("reviewer", 409, {"class": 1}),  # of which too few random images were answered
    "/api/rule_out/undo": ("reviewer", 409, {"batch": "r0123abcd"}),
    "/api/decisions": ("annotator", 200, {"decisions": []}),
    "/api/speed_test": ("annotator", 200, {}),
    "/api/speed_test/time": ("annotator", 400, {}),
    "/api/classes/add": ("annotator", 400, {}),
    "/api/recent": ("guest", 200, {}),
    "/api/items": ("guest", 200, {"images": [1]}),
    "/api/neighbours": ("guest", 200, {"image": 1, "by": "name"}),
    "/api/classes": ("guest", 200, {}),
    "/api/examples": ("guest", 200, {"class": 1}),
    "/api/gallery": ("guest", 400, {}),
    "/api/gallery/place": ("guest", 400, {}),
    "/api/gallery/ids": ("guest", 400, {}),
    "/api/gallery/counts": ("guest", 400, {}),
    "/api/gallery/grid": ("annotator", 409, {"sort": "like", "like": [1]}),  # no image is analyzed
    "/api/like": ("guest", 409, {}),  # no image is analyzed
    "/api/like/picture?name=a.jpg": ("guest", 409, {}),
    "/api/like/state": ("guest", 400, {}),
    "/api/twins": ("guest", 400, {}),
    "/api/event": ("guest", 200, {"image": 1}),
    "/api/find": ("guest", 200, {"text": "0", "count": 1}),
    "/api/history": ("guest", 200, {"image": 1}),
    "/api/map/select": ("guest", 400, {}),
    "/api/map": ("guest", 200, None),
    "/api/map/colors": ("guest", 400, None),
    "/api/image/1": ("guest", 200, None),
    "/api/thumb/1": ("guest", 200, None),
    "/api/heatmap/9/1/1": ("guest", 410, None),
    "/api/download/none": ("reviewer", 410, None),
    "/api/upload?name=a.csv": ("owner", 200, {}),
    "/": ("guest", 200, None),
    "/grid": ("guest", 200, None),  # the HTML file only; what it shows is up to the page, below
    "/_stcore/host-config": ("guest", 200, None),
}
ROLES = [NOBODY, *Role]
# And those that have no rights of their own: for programs, on the way in and out, and Streamlit's.
OTHER_ROUTES = {
    "/api/predictions": {"name": "outside", "images": [{"image": "000.jpg", "scores": {"fox": 0.9}}]},
    "/metrics": None,
    "/ready": None,
    "/api/script/{token}/annotate/annotate.js": None,
    "/sign-in": None,
    "/sign-out": None,
    "/_stcore/health": None,
    "/_stcore/stream": None,
    "/_stcore/upload_file/a/b": {},
    "/media/x": None,
    "/static/x": None,
    "/nothing": None,
}


@pytest.mark.parametrize("path", mark_slow_after(14, ROUTES))
def test_every_route_allows_only_the_required_roles(shared, path):
    needed, status, body = ROUTES[path]
    seen = {role: ask(shared, role, path, body)[0] for role in ROLES}
    seen = {role: 410 if answer == 202 else answer for role, answer in seen.items()}  # whoever asks for a map first
    assert seen == {role: status if ROLES.index(role) >= ROLES.index(needed) else 403 for role in ROLES}


def test_role_table_covers_every_route():
    from annotator.ui.route_table import load_routes

    beside = {path.replace("/annotate/annotate.js", "/{name:path}") for path in OTHER_ROUTES}
    known = {path.partition("?")[0].replace("/none", "/{name}") for path in ROUTES}
    known = {path.replace("/9/1/1", "/{run_id}/{image_id}/{class_id}").replace("/1", "/{image_id}") for path in known}
    assert {route.path for route in load_routes()} - beside == {path for path in known if "/api/" in path}


@pytest.mark.slow
def test_complete_project_offers_export_and_audit_to_reviewers_and_not_to_annotators(tmp_path):
    with served_to_roles(tmp_path) as served:
        db = Database(served.project)
        for image in images.load_all_images(db):
            given = Decision(f"done-{image.id:05}", "done", "owner", "done", image_id=image.id)
            assert not decisions.save(db, [given]).refused
        offered = {}
        for role in (Role.ANNOTATOR, Role.REVIEWER):
            complete = json.loads(ask(served, role, *AUTOPILOT)[2])["complete"]
            offered[role] = complete["exports"], bool(complete["audit"])
        assert offered == {Role.ANNOTATOR: (False, False), Role.REVIEWER: (True, True)}
        assert ask(served, Role.REVIEWER, "/api/autopilot/audit", {})[0] == 200
        complete = json.loads(ask(served, Role.ANNOTATOR, *AUTOPILOT)[2])["complete"]
        assert complete["audit_is_drawn"] and complete["audit"].startswith("12 pairs of an audit are unanswered.")


def test_request_with_the_page_token_of_a_member_other_than_signed_in_is_refused(shared):
    body = {"decisions": [DECISION | {"uuid": "a-forged-one"}]}
    status, _, text = ask(shared, "annotator", "/api/decisions", body, page_of="owner")
    assert status == 401 and "This page is of owner, and annotator is signed in" in text
    body = {"decisions": [DECISION | {"uuid": "a-named-one", "annotator": "owner"}]}
    _, _, text = ask(shared, "annotator", "/api/decisions", body)
    assert "given as 'owner'" in json.loads(text)["refused"]["a-named-one"]
    assert decisions.load_undoable(Database(shared.project), "owner", 10, 10) == []


@pytest.mark.slow
def test_queued_decision_of_another_member_is_saved_while_that_member_has_a_role(shared):
    db = Database(shared.project)
    members.add(db, "Cleo", "annotator", "test")
    token = Tokens(db.paths.secret, of_members=True).mint("Cleo")
    time.sleep(1.1)  # for which roles are not looked up again

    def send(uuid: str) -> dict:
        body = {"decisions": [DECISION | {"uuid": uuid, "annotator": "Cleo", "pass": token}]}
        return json.loads(ask(shared, "annotator", "/api/decisions", body)[2])

    assert send("it-waited")["saved"] == ["it-waited"]
    assert decisions.load_undoable(db, "Cleo", 10, 10)
    renaming.rename(db, "Cleo", "Clea", "test")
    until(lambda: send("of-a-page-of-her-old-name")["saved"])
    assert len(decisions.load_undoable(db, "Clea", 10, 10)) == 2
    members.set_role(db, "Clea", "none", "test")
    until(lambda: "given as 'Cleo'" in send("it-is-late")["refused"].get("it-is-late", ""))


def test_token_issued_before_sign_in_was_required_cannot_act_for_a_member(shared):
    db = Database(shared.project)
    typed = Tokens(db.paths.secret).mint("owner")  # without --auth anybody may have typed that name
    given = DECISION | {"uuid": "of-a-typed-name", "annotator": "owner", "pass": typed}
    refused = json.loads(ask(shared, "annotator", "/api/decisions", {"decisions": [given]})[2])["refused"]
    assert "given as 'owner'" in refused["of-a-typed-name"]
    assert decisions.load_undoable(db, "owner", 10, 10) == []
    assert ask(shared, "owner", "/api/items", {"images": [1]}, x_annotator_token=typed)[0] == 401
    own = given | {"uuid": "waited-for-its-owner", "annotator": "annotator"}
    assert json.loads(ask(shared, "annotator", "/api/decisions", {"decisions": [own]})[2])["saved"] == [own["uuid"]]


def test_role_removal_ends_open_sessions_and_a_lower_role_refuses_the_next_write(shared):
    db = Database(shared.project)
    members.add(db, "Dora", "annotator", "test")
    own = cookie(shared, "Dora")
    assert until(lambda: ask(shared, "Dora", "/api/items", {"images": [1]}, cookie=own)[0] == 200)
    members.set_role(db, "Dora", "guest", "test")
    status, _, text = ask(
        shared, "Dora", "/api/decisions", {"decisions": [DECISION | {"uuid": "of-dora-1"}]}, cookie=own
    )
    assert status == 403 and "role guest" in text, "the store asks at the write, the routes once a second"
    members.set_role(db, "Dora", "none", "test")
    until(lambda: ask(shared, "Dora", "/api/items", {"images": [1]}, cookie=own)[0] == 403)
    members.set_role(db, "Dora", "annotator", "test")
    time.sleep(1.1)
    assert ask(shared, "Dora", "/api/items", {"images": [1]}, cookie=own)[0] == 403, "that session has ended"
    assert ask(shared, "Dora", "/api/items", {"images": [1]})[0] == 200, "a new one has not"


@pytest.mark.parametrize(
    "change",
    [
        lambda name, value: f"{name}={value[:-2]}xx",
        lambda name, value: f"{name}={value[2:]}",
        lambda name, value: f"{name}=",
        lambda name, value: f"annotator_1={value}",
    ],
)
def test_forged_or_foreign_session_cookie_is_refused(shared, change):
    changed = change(*cookie(shared, "owner").split("=", 1))
    assert ask(shared, NOBODY, "/api/items", {"images": [1]}, cookie=changed)[0] == 403


def test_session_cookie_of_another_port_and_local_cookie_are_refused(shared):
    tokens = Tokens(Database(shared.project).paths.secret)
    owner = members.find_member(Database(shared.project), "owner")
    for value in (tokens.create_session_cookie(shared.port + 1, owner.id), tokens.create_cookie(shared.port)):
        mine = f"{cookie_name(shared.port)}={value}"
        assert ask(shared, NOBODY, "/", cookie=mine)[0] == 403
    assert not tokens.is_valid_cookie(tokens.create_session_cookie(shared.port, owner.id), shared.port)


@pytest.fixture(scope="module")
def bearers(shared) -> dict[str, str]:
    """Valid tokens of programs, by their route."""
    made = {"/api/predictions": access_tokens.PREDICTIONS_RIGHT, "/metrics": access_tokens.METRICS_RIGHT}
    db = Database(shared.project)
    return {path: f"Bearer {access_tokens.make(db, f'of {path}', right, 'test')}" for path, right in made.items()}


# What people, owners and programs write, and what each of these routes would.
WRITTEN = ("decision", "label", "lease", "class", "speed_test", "member", "access_log", "prediction_source", "setting")
WRITTEN += ("acceptance", "accepted")
HARMFUL = {"/api/decisions": {"decisions": [DECISION | {"uuid": "of-evil"}]}, "/api/classes/add": {"name": "evil"}}


def written(served: Served) -> list[object]:
    """All that a request may change."""
    db = Database(served.project)
    files = sorted(path.name for path in served.project.rglob("*") if path.parent.parent.name == "uploads")
    return [files, *(db.tuples(f"SELECT * FROM {table}") for table in WRITTEN)]


@pytest.mark.parametrize("path", mark_slow_after(12, [*ROUTES, *OTHER_ROUTES]))
def test_cross_site_request_to_any_route_is_refused_even_with_an_owner_session(shared, bearers, path):
    body = HARMFUL.get(path) or (ROUTES[path][2] if path in ROUTES else OTHER_ROUTES[path])
    token = Tokens(Database(shared.project).paths.secret, of_members=True).mint("owner")
    bearer = {"authorization": bearers[path]} if path in bearers else {}
    before = written(shared)
    here = f"127.0.0.1:{shared.port}"
    for site in (
        {"origin": "https://evil.example"},
        {"origin": f"https://{here}"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "null"},
        {"host": "evil.example"},
        {"host": "evil.example", "origin": "http://evil.example"},  # a name that leads here now
        {"host": "evil.example", "origin": f"http://{here}"},
    ):
        status, headers, _ = ask(shared, "owner", path.replace("{token}", token), body, **site, **bearer)
        assert status == 403 and "set-cookie" not in headers, site
        assert "access-control-allow-origin" not in headers, site
    assert written(shared) == before


def test_cross_site_request_cannot_sign_out_a_member(shared):
    assert ask(shared, "guest", "/sign-out", sec_fetch_site="cross-site")[0] == 403
    status, headers, text = ask(shared, "guest", "/sign-out", sec_fetch_site="same-origin")
    assert status == 200 and "Max-Age=0" in headers["set-cookie"] and "signed out" in text


def test_sign_out_ends_every_copy_of_one_session_and_no_other(shared):
    copied, other = cookie(shared, "guest"), cookie(shared, "guest")
    written_otherwise = f"{copied}=="  # the same signature in base64

    def statuses() -> list[int]:
        return [
            ask(shared, NOBODY, "/api/items", {"images": [1]}, cookie=one, x_annotator_token=page)[0]
            for one in (copied, written_otherwise, other)
        ]

    page = Tokens(Database(shared.project).paths.secret, of_members=True).mint("guest")
    assert statuses() == [200, 200, 200]
    ask(shared, NOBODY, "/sign-out", cookie=copied, sec_fetch_site="cross-site")
    assert statuses() == [200, 200, 200]
    ask(shared, NOBODY, "/sign-out", cookie=copied, sec_fetch_site="same-origin")
    assert statuses() == [403, 403, 200]
    db = Database(shared.project)
    newest = members.load_log(db, 1)
    assert (newest[0].what, newest[0].member) == (members.SIGNED_OUT_ENTRY, "guest")
    ask(shared, NOBODY, "/sign-out", cookie=copied, sec_fetch_site="same-origin")
    assert members.load_log(db, 1) == newest, "once is enough"
    restarted = Sessions(db, parse_access("invitation", shared.port), Tokens(db.paths.secret))
    restarted.refresh()
    found = [restarted.find_member(dict([one.split("=", 1)])) for one in (copied, written_otherwise, other)]
    assert [member and member.name for member in found] == [None, None, "guest"]


def test_invitation_link_starts_a_session_and_redirects_without_the_secret(shared):
    db = Database(shared.project)
    secret = members.create_link(db, "reviewer", "test")
    status, headers, _ = ask(shared, NOBODY, f"/grid?invitation={secret}&x=1")
    assert (status, headers["location"]) == (303, "/grid?x=1") and "httponly" in headers["set-cookie"].lower()
    status, _, text = ask(shared, "annotator", f"/?invitation={secret}")
    assert status == 403 and "signed in as <b>annotator</b>" in text, "nobody becomes somebody else unnoticed"
    for wrong in ("x", secret[:-1], "%00", "a" * 5000):
        assert ask(shared, NOBODY, f"/?invitation={wrong}")[0] == 403


def test_page_websocket_requires_a_session_and_the_same_origin(shared):
    here = f"http://127.0.0.1:{shared.port}"

    def connects(name: str, origin: str | None = here) -> bool:
        address = f"ws://127.0.0.1:{shared.port}/_stcore/stream"
        headers = {"cookie": cookie(shared, name)} if name != NOBODY else {}
        try:
            with websockets.sync.client.connect(address, origin=origin, additional_headers=headers, proxy=None):
                return True
        except InvalidStatus:
            return False

    assert {name: connects(name) for name in ROLES} == {
        **dict.fromkeys((NOBODY, "none"), False),
        **dict.fromkeys(("guest", "annotator", "reviewer", "owner"), True),
    }
    foreign = ("https://evil.example", f"https://127.0.0.1:{shared.port}", "null", None)
    assert [connects("owner", origin) for origin in foreign] == [False] * 4


@pytest.mark.parametrize("name", ["owner", "guest", NOBODY])
def test_streamlit_upload_route_returns_404(shared, name):
    for method in ("PUT", "DELETE", "OPTIONS", "GET"):
        assert ask(shared, name, "/_stcore/upload_file/a/b", method=method)[0] == 404, method


def listed(page: Page) -> list[str]:
    """The pages that the menus list."""
    menus = page.get_by_test_id("stTopNavSection")
    expect(page.locator(".who b")).to_be_visible(timeout=60_000)  # from then on the menus are those of this person
    titles = []
    for name in menus.all_inner_texts():
        menus.filter(has_text=name.split()[0]).click()
        items = page.get_by_role("menuitem")
        items.first.wait_for()
        titles += [text.split()[-1] for text in items.all_inner_texts()]  # behind the icon
        page.keyboard.press("Escape")
        expect(items).to_have_count(0)
    return titles


@pytest.mark.slow
def test_menus_and_settings_page_follow_the_role(browser, shared):
    """The menus, and an address that somebody types."""
    answer = Decision("there-is-one", "label", "owner", "click", 4, 1, 1)  # without any, less is listed
    assert decisions.save(Database(shared.project), [answer]).saved
    bars = {}
    for role in ("guest", "annotator", "reviewer", "owner"):
        page = open_page(browser, shared, role, "/progress")
        page.context.add_cookies([browser_cookie(shared, role)])
        page.goto(f"{shared.address}/progress")
        bars[role] = listed(page)
        page.goto(f"{shared.address}/settings")
        if role == "owner":
            expect(page.get_by_text("Training method", exact=True)).to_be_visible(timeout=60_000)
        else:
            expect(page.get_by_text(f"Settings needs the role owner, and yours is {role}.")).to_be_visible(
                timeout=60_000
            )
    assert {"Annotate", "Grid"} & set(bars["guest"]) == set() and "Gallery" in bars["guest"]
    assert all(set(less) < set(more) for less, more in itertools.pairwise(bars.values()))


def test_views_hidden_by_an_owner_are_refused_to_annotators_and_allowed_to_reviewers(shared):
    db = Database(shared.project)
    members.set_hidden_views(db, ["history", "map"], "test")
    until(lambda: ask(shared, "annotator", "/api/history", {"image": 1})[0] == 403)
    assert (
        ask(shared, "guest", "/api/map")[0] == 403
        and ask(shared, "annotator", "/api/find", {"text": "0", "count": 1})[0] == 200
    )
    assert ask(shared, "reviewer", "/api/history", {"image": 1})[0] == ask(shared, "owner", "/api/map")[0] == 200
    members.set_hidden_views(db, [], "test")
    until(lambda: ask(shared, "annotator", "/api/history", {"image": 1})[0] == 200)


@pytest.mark.slow
def test_annotator_labels_under_the_name_of_the_session(browser, shared):
    page = open_page(browser, shared, "somebody else")
    page.context.add_cookies([browser_cookie(shared, "annotator")])
    page.goto(f"{shared.address}/annotate")
    wait_for_picture(page)
    expect(page.locator(".who b")).to_have_text("annotator")
    image = on_screen(page)
    page.keyboard.press("1")
    wait_for_another(page, image)
    db = Database(shared.project)
    until(lambda: [d.image_id for d in decisions.load_undoable(db, "annotator", 1, 1)] == [image])
    assert not decisions.load_undoable(db, "somebody else", 1, 1)
    page.get_by_role("link", name="Sign out").click()
    expect(page.get_by_text("You are signed out")).to_be_visible()


@pytest.mark.slow
def test_role_removal_closes_the_progress_page_and_keeps_unsent_answers_until_restored(browser, shared):
    db = Database(shared.project)
    members.add(db, "Nora", "annotator", "test")
    until(lambda: ask(shared, "Nora", "/api/items", {"images": [1]})[0] == 200)
    page = open_page(browser, shared, "x")
    page.context.add_cookies([browser_cookie(shared, "Nora")])
    page.goto(f"{shared.address}/annotate")
    wait_for_picture(page)
    progress = page.context.new_page()
    progress.goto(f"{shared.address}/progress")
    expect(progress.get_by_text("Labeled images", exact=True)).to_be_visible(timeout=60_000)
    image = on_screen(page)
    members.set_role(db, "Nora", "none", "test")
    expect(progress.get_by_text("an owner took your role away")).to_be_visible()
    expect(progress.get_by_text("Labeled images", exact=True)).to_have_count(0)
    page.keyboard.press("1")
    expect(page.locator(".foot")).to_contain_text("1 unsent")
    assert decisions.load_undoable(db, "Nora", 10, 10) == []
    members.set_role(db, "Nora", "annotator", "test")
    progress.goto(f"{shared.address}/?invitation={members.create_link(db, 'Nora', 'test')}")
    until(lambda: [(d.image_id, d.class_id) for d in decisions.load_undoable(db, "Nora", 10, 10)] == [(image, 1)])
    expect(page.locator(".foot")).to_contain_text("All saved")


@pytest.mark.slow
def test_download_button_checks_the_role_again_when_clicked(browser, shared):
    db = Database(shared.project)
    members.add(db, "Olga", "owner", "test")
    until(lambda: ask(shared, "Olga", "/api/items", {"images": [1]})[0] == 200)
    page = open_page(browser, shared, "x")
    page.context.add_cookies([browser_cookie(shared, "Olga")])
    page.goto(f"{shared.address}/members")
    button = page.get_by_role("button", name="Download all as CSV")
    button.wait_for(timeout=60_000)
    wait_until_drawn(page)
    with page.expect_download() as download:
        button.click()
    assert "Olga" in download.value.path().read_text()
    members.set_role(db, "Olga", "guest", "test")
    time.sleep(1.1)  # for which roles are not looked up again
    downloads: list[object] = []
    page.on("download", lambda download: downloads.append(download))
    button.click()
    expect(page.get_by_text("Members needs the role owner, and yours is guest.")).to_be_visible()
    until(lambda: "Olga has the role guest (looks); this needs owner." in shared.log.read_text())
    assert downloads == []


@pytest.mark.slow
def test_members_page_refuses_a_change_when_another_owner_changed_the_value_meanwhile(browser, shared):
    db = Database(shared.project)
    members.add(db, "Mona", "guest", "test")
    # All in sight: scrolling closes the list of the box.
    page = open_page(browser, shared, "x", "/members", viewport={"width": 1200, "height": 1800})
    page.context.add_cookies([browser_cookie(shared, "owner")])
    page.goto(f"{shared.address}/members")
    box = page.get_by_role("combobox", name="Role of Mona")
    box.wait_for(timeout=60_000)
    members.set_role(db, "Mona", "reviewer", "another owner")
    wait_until_fetched(page)
    box.fill("annotator")
    expect(page.get_by_role("option")).to_have_count(1)
    box.press("Enter")
    expect(page.get_by_text("Meanwhile somebody gave Mona the role reviewer; you saw guest.")).to_be_visible()
    assert members.find_member(db, "Mona").role == "reviewer"
    wait_until_drawn(page)  # else this run of the page may still read what the other owner chooses next
    members.set_hidden_views(db, ["map"], "another owner")
    box = page.get_by_role("combobox", name="Guests and annotators do not see")
    box.fill("Progress")
    expect(page.get_by_role("option")).to_have_count(1)
    box.press("Enter")
    expect(page.get_by_text("Meanwhile somebody chose to hide map; you saw nothing.")).to_be_visible()
    assert members.get_hidden_views(db) == ("map",)
    wait_until_fetched(page)
    box.fill("Progress")
    expect(page.get_by_role("option")).to_have_count(1)
    box.press("Enter")
    until(lambda: members.get_hidden_views(db) == ("map", "progress"))
    members.set_hidden_views(db, [], "test")


@pytest.mark.slow
def test_members_page_shows_invitation_links_until_dismissed_and_updates_renamed_members(browser, shared):
    db = Database(shared.project)
    made = [members.add(db, name, "guest", "test") for name in ("Una", "Vic")]
    page = open_page(browser, shared, "x", "/members", viewport={"width": 1200, "height": 2400})
    page.context.add_cookies([browser_cookie(shared, "owner")])
    page.goto(f"{shared.address}/members")
    for member in made:
        page.locator(f".st-key-link_{member.id}").get_by_role("button").first.click(timeout=60_000)
        expect(page.get_by_text(f"Send this link to {member.name} only.")).to_be_visible()
    links = page.get_by_test_id("stCode").filter(has_text="invitation=")
    expect(links).to_have_count(2)
    page.get_by_role("button", name="Dismiss the link of Una").click()
    expect(links).to_have_count(1)
    expect(page.get_by_text("Send this link to Vic only.")).to_be_visible()
    page.get_by_role("button", name="Rename Vic").click()
    page.get_by_label("New name").fill("Victoria")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.get_by_text("Send this link to Victoria only.")).to_be_visible()
    assert {"Una", "Victoria"} <= {member.name for member in members.load_members(db)}


@pytest.mark.slow
def test_members_link_command_prints_a_link_to_the_served_project(shared, tmp_path, annotator):
    assert Database(shared.project).get_setting(SERVED_TO_TEAM_SETTING) is True
    link = annotator("members", "link", str(shared.project), "guest").stdout
    assert link.startswith(f"{shared.address}/?invitation=")

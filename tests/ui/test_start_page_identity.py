"""A visitor of a team's start page is known by their session: a name is unique within one project only."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import draw
from harness.child_processes import free_port
from harness.served import until
from harness.start_page import Member, answers, at_home, send

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.people import members, renaming
from annotator.ui.home.home_server import prepare_projects

pytestmark = pytest.mark.process


@pytest.fixture
def owners(tmp_path: Path) -> Iterator[tuple[Member, Member, Path]]:
    """Ann, who owns birds, Eve, who owns mammals and calls herself Ann there, and the folder of their projects."""
    photo = draw(tmp_path / "photos" / "a.jpg", (), seed=1)
    (tmp_path / "classes.txt").write_text("fox\n")
    for name in ("birds", "mammals"):
        set_up_project(tmp_path / "all" / name, images_folder=photo.parent, class_file=tmp_path / "classes.txt")
    port = free_port()
    birds, mammals = prepare_projects([tmp_path / "all"], port)
    members.add(birds.db, "Ann", "owner", "test")
    members.add(mammals.db, "Eve", "owner", "test")
    renaming.rename(mammals.db, "Eve", "Ann", "Eve")
    address = f"http://127.0.0.1:{port}"
    words = ["--auth", "invitation", "--url", address, "--port", port, "--roots", tmp_path, tmp_path / "all"]
    with at_home(*words):
        until(lambda: answers(port) and answers(birds.port) and answers(mammals.port))
        ann, eve = Member(birds, "Ann", address), Member(mammals, "Ann", address)
        for one in (ann, eve):
            one.take_pass("/start/new")
        yield ann, eve, tmp_path / "all"


def test_owner_who_takes_the_name_of_a_project_creator_gets_no_invitation_to_the_new_project(owners):
    ann, eve, folder = owners
    state = ann.make(name="rodents", path=str(folder.parent / "photos"))
    assert state["error"] == "" and "/rodents/?invitation=" in state["link"]
    other = eve.ask("state")
    assert (other["name"], other["link"], other["is_at_work"]) == ("", "", False)
    assert ann.ask("state")["link"] == state["link"]
    [owner] = members.load_members(Database(folder / "rodents"))
    assert (owner.name, owner.role.value, owner.has_link) == ("Ann", "owner", True)


def test_owners_of_the_same_name_do_not_share_uploads_or_page_tokens(owners):
    ann, eve, folder = owners
    content = (folder.parent / "photos" / "a.jpg").read_bytes()
    own, other = ann.ask("images_begin")["batch"], eve.ask("images_begin")["batch"]
    assert send(ann, own, "a.jpg", content)[0] == 200, "the upload of the other owner does not replace it"
    assert send(eve, own, "b.jpg", content)[0] == 409
    eve.ask("images_end", batch=own, keep=False)
    assert send(eve, other, "c.jpg", content)[0] == 200
    photos = [Path(one.ask("images_end", batch=batch, keep=True)["path"]) for one, batch in ((ann, own), (eve, other))]
    assert [[path.name for path in place.iterdir()] for place in photos] == [["a.jpg"], ["c.jpg"]]
    eve.token = ann.token
    assert eve.ask("images_begin")["status"] == 401

"""Kill -9 of the start page, or of a project's server, in the middle of what somebody has pressed.

After the next start nothing is lost or doubled, nothing half made passes for whole, and nothing temporary is left.
"""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from conftest import CLASSES, draw
from harness.answers import answer_cell
from harness.child_processes import free_port
from harness.served import until
from harness.start_page import Asking, all_below, answers, at_home, send, served_by

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.labels import answer_mode
from annotator.store.upkeep import consistency
from annotator.store.upkeep.restoring import restore
from annotator.ui.home import hosted_projects
from annotator.ui.home.project_creator import CreatedProject, NewProjectOptions, ProjectCreator
from annotator.ui.home.visitors import Visitor

pytestmark = pytest.mark.process

ME = Visitor([], is_team=False)


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """The home folder of somebody with a folder of photos."""
    for number in range(24):
        draw(tmp_path / "ann" / "birds" / f"{number:02}.jpg", CLASSES[number % 3 : number % 3 + 1], seed=number)
    return tmp_path / "ann"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch) -> Iterator[None]:
    """Fail where a start page leaves something in the folder for temporary files, once the next one has ended."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    yield
    assert list((tmp_path / "temporary").glob(".annotator-start*")) == []


@contextmanager
def start_page(person: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen, Asking]]:
    with at_home("--port", port or free_port(), HOME=person) as home:
        yield home, Asking(until(lambda: next((line for line in home.stdout if "?key=" in line), None)).strip())


def kill(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()


@pytest.mark.slow
def test_restart_deletes_unfinished_uploads_and_keeps_finished_ones(person):
    content = (person / "birds" / "00.jpg").read_bytes()
    with start_page(person) as (home, asking):
        come = asking.ask("images_begin")["batch"]
        send(asking, come, "a.jpg", content)
        folder = Path(asking.ask("images_end", batch=come, keep=True)["path"])
        send(asking, asking.ask("images_begin")["batch"], "b.jpg", content)
        kill(home)
    assert len(all_below(folder.parent)) == 2
    with start_page(person):
        assert [path.name for path in folder.parent.iterdir()] == [folder.name] and all_below(folder) == ["a.jpg"]


MAKES = """
import os, sys
from pathlib import Path
from annotator.store.images import registration
from annotator.store.labels import answer_mode as answering
from annotator.ui.home.project_creator import CreatedProject, NewProjectOptions, ProjectCreator
from annotator.ui.home.visitors import Visitor

registration.FILES_PER_TRANSACTION = 5
ME = Visitor([], is_team=False)

class Dying(ProjectCreator):
    def _report_progress(self, done, of):
        if done == 13:
            os.kill(os.getpid(), 9)

making = Dying(lambda project, visitor: CreatedProject("", ""))
making.start(NewProjectOptions(Path(sys.argv[1]), Path(sys.argv[2]), "fox", "split", None, answering.MODE_ONE), ME)
making._thread.join()
"""


@pytest.mark.slow
def test_killed_project_creation_is_listed_and_can_be_finished_or_removed(person):
    folder, photos = person / "annotator-projects", person / "birds"
    for name in ("birds", "other", "cancelled"):
        killed = subprocess.run([sys.executable, "-P", "-c", MAKES, folder / name, photos], check=False)
        assert killed.returncode == -signal.SIGKILL and (folder / name).is_dir()
    making = ProjectCreator(lambda project, visitor: CreatedProject("", ""))
    making.start(NewProjectOptions(folder / "cancelled", photos, "fox", "split", None, answer_mode.MODE_ONE), ME)
    making.stop()
    assert "Cancelled" in making.state.error and not (folder / "cancelled").exists()
    with start_page(person) as (_, asking):
        text = asking.get(f"{asking.address}/")[1]
        assert "No projects yet" in text and text.count("is not finished") == 2 and f"images in {photos}" in text
        assert asking.ask("remove_unfinished", name="../birds")["status"] == 409
        assert asking.ask("remove_unfinished", name="other")["status"] == 200 and not (folder / "other").exists()
        page = asking.get(f"{asking.address}/start/new?unfinished=birds")[1]
        assert f"&quot;attempt&quot;: {{&quot;folder&quot;: &quot;{photos}&quot;" in page
        assert asking.ask("look", path=str(photos))["name"] == "birds", "it goes on under its name"
        state = asking.make(name="birds", path=str(photos), text="fox\nheron", mode="all")
        assert state["error"] == "" and "not finished" not in asking.get(f"{asking.address}/")[1]
        assert asking.ask("remove_unfinished", name="birds")["status"] == 409
    db = Database(folder / "birds")
    assert db.value("SELECT count(*) FROM image") == 24 and answer_mode.get_project_mode(db) == answer_mode.MODE_ALL
    assert consistency.find_problems(db) == [] and not list((folder / "birds").glob("*unfinished*"))


# Forks a process for each line of its input, which does what the line says of a project, and kills itself before the
# given file is opened, renamed or made. The projects are archived, so that no server is started for them.
KEEPS = """
import json, os, sys
from pathlib import Path
from annotator.ui.home.project_servers import ProjectServers, ServingOptions
from annotator.ui.home.project_page import ProjectPage
from annotator.ui.home.home_server import prepare_projects
from annotator.ui.home.visitors import Visitors

folder, port = Path(sys.argv[1]), int(sys.argv[2])
steps = last = 0

def watch(event, arguments):
    global steps
    if event in ("open", "os.rename", "os.mkdir", "sqlite3.connect"):
        steps += 1
        if steps == last:
            os.kill(os.getpid(), 9)

for line in sys.stdin:
    last, what, body = json.loads(line)
    told, tell = os.pipe()
    pid = os.fork()
    if not pid:
        places, how = prepare_projects([folder], port), ServingOptions("local", f"http://127.0.0.1:{port}")
        visitors = Visitors(places, False)
        keeping = ProjectPage(places, ProjectServers([], how), how, port, visitors)
        sys.addaudithook(watch)
        getattr(keeping, what)(json.dumps(body).encode(), visitors.identify({}))
        os.write(tell, str(steps).encode())
        os._exit(0)
    os.close(tell)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps([status, int(os.read(told, 20) or 0)]), flush=True)
    os.close(told)
"""


@pytest.fixture
def keep(tmp_path, processes) -> Callable[..., int]:
    """Does something to a project in a process of its own, and returns in how many steps, or kills it at one."""
    command = [sys.executable, "-P", "-c", KEEPS, str(tmp_path / "all"), str(free_port())]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    processes.append(started)

    def run(what: str, body: dict, killed_at: int = 0) -> int:
        assert started.stdin and started.stdout
        started.stdin.write(json.dumps([killed_at, what, body]).encode() + b"\n")
        started.stdin.flush()
        status, steps = json.loads(started.stdout.readline())
        assert status in (0, -signal.SIGKILL) and (killed_at or status == 0)
        return steps

    return run


def test_killed_rename_or_move_to_trash_leaves_the_project_exactly_once(tmp_path, photos, class_file, keep):
    folder = tmp_path / "all"
    set_up_project(folder / "birds", images_folder=photos, class_file=class_file)
    db = Database(folder / "birds")
    db.set_setting(hosted_projects.ARCHIVED_SETTING, True)
    answer_cell(db, 1, 1)
    db.close()
    renames = {"project": "birds", "name": "aves"}
    steps = keep("_rename_project", renames)
    assert keep("_rename_project", {"project": "aves", "name": "birds"})
    names: set[str] = set()
    for step in range(1, steps + 1, max(1, steps // 6)):
        keep("_rename_project", renames, killed_at=step)
        [place] = hosted_projects.find_projects([folder]).all
        names.add(place.name)
        assert place.name in ("birds", "aves") and place.db is not None and hosted_projects.is_archived(place)
        assert place.db.value("SELECT count(*) FROM decision") == 1 and consistency.find_problems(place.db) == []
        if place.name == "aves":
            keep("_rename_project", {"project": "aves", "name": "birds"})
    assert names == {"birds", "aves"}, "some were killed before it had its name, some after"
    trash = {"project": "birds", "typed": "birds"}
    for step in range(1, steps + 1, max(1, steps // 6)):
        keep("_trash_project", trash, killed_at=step)
        kept = list((folder / ".trash").glob("birds-*"))
        assert len(hosted_projects.find_projects([folder]).all) + len(kept) == 1
        if kept:
            assert consistency.find_problems(Database(kept[0])) == []
            kept[0].rename(folder / "birds")
    assert [path.name for path in folder.iterdir()] in (["birds", ".trash"], [".trash", "birds"])


@pytest.mark.slow
def test_start_page_killed_during_backup_and_rename_keeps_one_complete_project(person, tmp_path):
    folder = person / "annotator-projects"
    (tmp_path / "classes.txt").write_text("fox\n")
    set_up_project(folder / "birds", images_folder=person / "birds", class_file=tmp_path / "classes.txt")
    answer_cell(Database(folder / "birds"), 1, 1)
    backups, page_port = folder / ".backups" / "birds", free_port()
    # At one port, as people start it: a project keeps its own from start to start only above that of the start page.
    with start_page(person, page_port) as (home, asking):
        port = Database(folder / "birds").get_setting(hosted_projects.PORT_SETTING)
        asking.take_pass("/start/project/birds")
        assert asking.ask("backup", project="birds")["status"] == 200
        until(backups.exists)
        kill(home)
    until(lambda: not served_by(folder / "birds") and not workers_of(folder))
    with start_page(person, page_port) as (home, asking):
        asking.take_pass("/start/project/birds")
        state = asking.ask("backup", project="birds")
        state = until(lambda: (now := asking.ask("backup_state", project="birds")) and not now["is_at_work"] and now)
        assert state["error"] == "" and not list(backups.rglob("*.part*"))
        until(lambda: answers(port))
        rename = threading.Thread(target=renamed_until_killed, args=[asking])
        rename.start()
        until((folder / "aves").exists)
        kill(home)
        rename.join()
    until(lambda: not served_by(folder / "aves") and not workers_of(folder))
    with start_page(person, page_port) as (home, asking):
        text = asking.get(f"{asking.address}/")[1]
        assert text.count("<li>") == 1 and 'href="open/aves"' in text
        until(lambda: answers(port))
        assert asking.get(f"{asking.address}/open/aves")[0] == 200
    restore(backups, tmp_path / "again")
    for project in (folder / "aves", tmp_path / "again"):
        db = Database(project)
        assert db.value("SELECT count(*) FROM decision") == 1 and consistency.find_problems(db) == []


def renamed_until_killed(asking: Asking) -> None:
    with suppress(OSError):
        asking.ask("rename", project="birds", name="aves")


def workers_of(folder: Path) -> list[str]:
    """The commands of processes that work on a project in this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(bytes(1), b" ").decode()
        except OSError:
            continue
        if f"worker {folder}" in command:
            found.append(command)
    return found

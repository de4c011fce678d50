"""Commands that are killed at any moment: nothing, or all of it; the same command goes on and leaves nothing behind."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from benchmarks.faults.command_kills import PROBLEM_KINDS, measure
from benchmarks.faults.fork_server import ForkServer
from benchmarks.faults.scenes import SCENES
from benchmarks.faults.scenes.export_scenes import CopiedFolder
from harness.answers import answer_cell
from harness.short_forms import mark_slow_after

from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.settings import Paths
from annotator.store.database import database_copies, jobs, new_folders
from annotator.store.database.arrays import remove_unfinished_files
from annotator.store.database.database import Database
from annotator.store.database.files_together import finish_renaming
from annotator.store.disk import processes
from annotator.store.networks import adaptation, embedding_claim
from annotator.store.upkeep import backup, health, restoring

TRAINS = ("adapt", "switch", "adapted_export", "adapt_of_worker", "classifier")
pytestmark = pytest.mark.process


@pytest.mark.parametrize("name", mark_slow_after(3, [name for name in SCENES if name not in TRAINS]))
def test_command_killed_near_a_rename_or_commit_is_all_or_nothing(name):
    result = measure(4, [1], [name])
    assert not result["broken"] and result["figures"][f"{name}_kills"] == 4, result["broken"]


@pytest.mark.slow
@pytest.mark.training
def test_adapted_backbone_and_classifier_are_complete_or_missing_after_a_kill(tmp_path):
    result = measure(4, [1], TRAINS)
    assert not result["broken"] and result["figures"]["commands_killed"] == 4 * len(TRAINS), result["broken"]


def test_kill_measurement_refuses_an_unknown_command_and_lists_the_known_ones():
    with pytest.raises(AnnotatorError, match=r"'merging'\. There is: merge"):
        measure(1, names=["merging"])
    assert len(PROBLEM_KINDS) == 8


CALLED = """
import subprocess, sys
from pathlib import Path

def write_three(folder):
    for number in range(3):
        Path(folder, str(number)).write_text("content")
    Path(folder, "2").rename(Path(folder, "3"))

def write_together(target, text):
    from annotator.store.database.files_together import replace_files_together

    with replace_files_together(Path(target)) as files:
        for name in (Path(target), Path(target).with_name("labels.card.json")):
            files.add_file(name).write_text(f"{text} {name.name}")

def start_another():
    subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"], check=True)
"""


@pytest.fixture
def dying(tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("called")
    (place / "called.py").write_text(CALLED)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(place), *sys.path]))
    started = ForkServer()
    yield started
    started.close()


@pytest.mark.slow
def test_kill_helper_stops_before_the_given_step_and_reports_leftover_processes(dying, tmp_path):
    whole = dying.run("call", "called:write_three", tmp_path)
    assert (whole.status, whole.steps, len(whole.turns)) == (0, 4, 1) and whole.leftover_processes == ()
    for path in tmp_path.iterdir():
        path.unlink()
    assert dying.run("call", "called:write_three", tmp_path, kill_step=3).is_killed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]
    assert dying.run("call", "called:write_three", tmp_path, kill_step=whole.turns[0] + 1).status == 0
    left = dying.run("call", "called:start_another", kill_seconds=1.5)
    assert left.is_killed and len(left.leftover_processes) == 1 and "sleep" in left.leftover_processes[0]


@pytest.mark.slow
def test_folder_always_exists_while_it_is_replaced(dying, tmp_path):
    scene = CopiedFolder(tmp_path / "at")
    scene.folder.mkdir()
    scene.make()
    before = scene.read_state()
    whole = dying.run(*scene.build_command())
    after = scene.read_state()
    assert (before, after) == ("old", "new")
    # The exchange of two names is no step that is counted: the renames are, where the system has no exchange.
    for step in [step for turn in whole.turns for step in (turn, turn + 1)]:
        dying.run(*scene.build_command(), kill_step=min(step, whole.steps))
        assert scene.read_state() in ("old", "new"), step


# -- exports of several files


@pytest.fixture
def killed_while_renaming(dying):
    def write_and_die(target: Path, text: str) -> None:
        count = target.with_name("count")
        count.mkdir()
        turns = dying.run("call", "called:write_together", count / target.name, text).turns
        shutil.rmtree(count)
        assert dying.run("call", "called:write_together", target, text, kill_step=turns[1]).is_killed

    return write_and_die


def test_finish_renaming_completes_the_file_replacements_of_a_killed_export(tmp_path, killed_while_renaming):
    target, card = tmp_path / "labels.csv", tmp_path / "labels.card.json"
    for path in (target, target.with_name("labels.card.json")):
        path.write_text(f"old {path.name}")
    killed_while_renaming(target, "new")
    assert (target.read_text(), card.read_text()) == ("old labels.csv", "new labels.card.json")
    finish_renaming(target)
    assert (target.read_text(), card.read_text()) == ("new labels.csv", "new labels.card.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.card.json", "labels.csv"]


def test_finish_renaming_keeps_a_file_written_after_the_kill(tmp_path, killed_while_renaming):
    target = tmp_path / "labels.csv"
    for path in (target, target.with_name("labels.card.json")):
        path.write_text(f"old {path.name}")
    killed_while_renaming(target, "new")
    target.write_text("mine")
    finish_renaming(target)
    assert target.read_text() == "mine" and len(list(tmp_path.iterdir())) == 2


def test_finish_renaming_ignores_journals_of_live_processes_and_paths_of_other_files(tmp_path):
    target = tmp_path / "labels.csv"
    target.write_text("old")
    (tmp_path / "other").write_text("other")
    rows = '[["labels.csv", "../other", null], ["../out", ".labels.csv.x.part", null], ["labels.csv", "other", null]]'
    (tmp_path / ".labels.csv.x.renaming.part").write_text(rows)
    (tmp_path / f".labels.csv.{processes.get_process_name()}-0a0b0c.renaming.part").write_text(rows)
    finish_renaming(target)
    assert target.read_text() == "old" and (tmp_path / "other").read_text() == "other"
    assert len(list(tmp_path.glob("*.renaming.part"))) == 1, "that of this process"


# -- who is at work


def dead() -> str:
    """The name of a process that has ended."""
    code = "from annotator.store.disk.processes import get_process_name; print(get_process_name())"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def reused() -> str:
    """The name of an ended process whose number this one has now."""
    machine, pid, started = processes.get_process_name().split("-")
    return f"{machine}-{pid}-{int(started, 16) - 1:x}"


def test_has_process_ended_checks_process_number_and_start_time():
    assert processes.has_process_ended(processes.get_process_name()) is False
    assert processes.has_process_ended(dead()) is True
    assert processes.has_process_ended(reused()) is True
    assert processes.has_process_ended("00000000-1-1") is None and processes.has_process_ended("") is None


@pytest.mark.parametrize("store", [adaptation, embedding_claim])
def test_lock_of_a_killed_process_with_a_reused_process_id_does_not_block(db, store):
    mine = store.claim(db, "local")
    with pytest.raises(AlreadyRunning):
        store.claim(db, "local")
    store.report(db, type(mine)(**vars(mine) | {"process": reused()}))
    assert store.get_running(db) is None
    store.release(db)
    assert db.get_setting(store.STATE_SETTING)["process"] == reused()
    store.claim(db, "local")


def test_cleanup_removes_part_files_of_ended_processes_and_old_ones_only(tmp_path):
    names = {name: f".a.csv.{name}-0a0b0c.part" for name in (dead(), reused(), processes.get_process_name())}
    for name in (*names.values(), f".a.csv.{dead()}-0a0b0c.part-journal", ".a.csv.ab12.part"):
        (tmp_path / name).write_text("")
    remove_unfinished_files(tmp_path, ".a.*")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [names[processes.get_process_name()], ".a.csv.ab12.part"]
    )
    os.utime(tmp_path / ".a.csv.ab12.part", (0, 0))
    remove_unfinished_files(tmp_path, ".a.*")
    assert [path.name for path in tmp_path.iterdir()] == [names[processes.get_process_name()]]


def test_replace_folder_atomically_keeps_the_old_folder_after_an_error(tmp_path):
    target = tmp_path / "set"
    for text in ("old", "new"):
        with new_folders.replace_folder_atomically(target) as folder:
            (folder / "file").write_text(text)
    with suppress(RuntimeError), new_folders.replace_folder_atomically(target) as folder:
        (folder / "file").write_text("half")
        raise RuntimeError
    assert (target / "file").read_text() == "new" and [path.name for path in tmp_path.iterdir()] == ["set"]


# -- clocks that were ahead


def test_pruning_keeps_the_newest_copy_and_backup_despite_files_dated_in_the_future(project, tmp_path):
    answer_cell(Database(project), 2, 1)
    for day in ("20990101", "20990102", "20990103"):
        kept = database_copies.keep_copy(project / "project.db", "upgrade")
        kept.rename(kept.with_name(f"upgrade-{day}-000000-999999999.db"))
    newest = database_copies.keep_copy(project / "project.db", "upgrade")
    assert newest.exists() and newest == max(newest.parent.glob("upgrade-*.db"))
    made = backup.create_backup(project, tmp_path / "kept").manifest
    made.rename(made.with_name("20990101-000000-000000007.json"))
    answer_cell(Database(project), 3, 1)
    newest = backup.create_backup(project, tmp_path / "kept").manifest
    backup.prune(tmp_path / "kept", 1)
    assert restoring.list_manifests(tmp_path / "kept") == [newest]
    restoring.restore(tmp_path / "kept", tmp_path / "again")
    assert Database(tmp_path / "again").value("SELECT count(*) FROM decision") == 2


def test_worker_takes_the_newest_heatmap_request_first_despite_a_future_timestamp(db):
    jobs.request_heatmap(db, 1, 1, 1)
    with db.writing() as sql:
        sql.execute("UPDATE job SET asked_at = 9e9")
    jobs.request_heatmap(db, 1, 2, 1)
    assert [job.image_id for job in jobs.claim(db, "heatmap", 1)] == [2]
    jobs.request_heatmap(db, 1, 3, 1)
    jobs.request_heatmap(db, 1, 1, 1)
    assert [job.image_id for job in jobs.claim(db, "heatmap")] == [1, 3]


# -- what the doctor says of it


def test_doctor_reports_temporary_files_of_killed_processes_and_repair_deletes_them(annotator, project):
    gone = dead()
    folder = project / "adapted" / f".net.{gone}-0a0b0c.part"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_text("half")
    (project / "copies").mkdir()
    journal = project / "copies" / f".upgrade-1.db.{gone}-0a0b0c.part-journal"
    at_work = project / "copies" / f".upgrade-1.db.{processes.get_process_name()}-0a0b0c.part"
    imported = project / "imported" / "zip" / f".a.jpg.{gone}-0a0b0c.part"
    imported.parent.mkdir(parents=True)
    for path in (journal, at_work, imported):
        path.write_text("")
    said = annotator("doctor", project, code=1).stdout
    assert "2 temporary files and folders" in said and "--repair" in said and at_work.name not in said
    assert folder.exists() and journal.exists()
    assert "Repaired: 2 temporary files" in annotator("doctor", project, "--repair").stdout
    assert not folder.exists() and not journal.exists() and at_work.exists() and imported.exists()
    assert health.find_leftovers(Paths(project)) == []

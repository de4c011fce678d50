"""A full disk, and names that no file can have, end every command with a sentence, and leave the project as it was."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import draw

from annotator.store.database.database import Database
from annotator.store.disk import system_errors

pytestmark = pytest.mark.process

# All commands in one process of which no file may grow beyond so many bytes, each as `annotator` would run it.
SCRIPT = """
import json, resource, sys, traceback
from annotator.__main__ import main

sys.path.insert(0, "")
limit, commands = int(sys.argv[1]), json.loads(sys.stdin.read())
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
streams = sys.stdout, sys.stderr
for words in commands:
    sys.argv, status = ["annotator", *words], 0
    sys.stdout, sys.stderr = streams
    try:
        main()
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:
        status = traceback.format_exc()
    streams[1].write("\\n--ended " + json.dumps([words[:1], status]) + "\\n")
    streams[1].flush()
"""


WORDS = """train embed undo adapt adapted backbone suggest status tags predictions names certificate audit accept pace
agreement people doctor link"""
OF_A_PROJECT: dict[str, list[str]] = {name: [] for name in WORDS.split()}
OF_A_PROJECT |= {"import": ["labels.csv"], "history": ["00.jpg"], "export": ["e.csv"], "diff": ["a", "b"]}
OF_A_PROJECT |= {"backup": ["b"], "worker": ["--once"]}


def run(limit: int, *commands: list[object]) -> list[tuple[str, str]]:
    """(What was said as an error, what a traceback would say) of each command."""
    import json

    words = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(limit)],
        input=words.encode(),
        capture_output=True,
        timeout=300,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    parts = done.stderr.decode(errors="replace").split("\n--ended ")
    ended = [json.loads(part.split("\n", 1)[0])[1] for part in parts[1:]]
    said = [parts[0], *(part.split("\n", 1)[1] for part in parts[1:-1])]
    assert len(ended) == len(commands), done.stderr.decode(errors="replace")[-2000:]
    return [(text, status if isinstance(status, str) else "") for text, status in zip(said, ended, strict=True)]


@pytest.mark.slow
def test_every_writing_command_reports_a_full_disk_and_changes_nothing(db, project, tmp_path):
    draw(tmp_path / "new" / "a.png", seed=7)
    with zipfile.ZipFile(tmp_path / "new.zip", "w") as archive:
        archive.write(tmp_path / "new" / "a.png", "a.png")
    names = [f"{number:02}.jpg" for number in range(20)]
    (tmp_path / "labels.csv").write_text("image,class,state\n" + "".join(f"{name},fox,present\n" for name in names))
    (tmp_path / "scores.csv").write_text("image,class,score\n" + "".join(f"{name},fox,0.5\n" for name in names))
    db.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = db.rows("SELECT * FROM decision"), db.rows("SELECT * FROM class"), db.rows("SELECT * FROM image")
    db.close()
    commands = [
        ["init", tmp_path / "other", "--images", tmp_path / "new"],
        ["init", project, "--images", tmp_path / "new"],
        ["import", project, tmp_path / "labels.csv", "--yes"],
        ["import", project, tmp_path / "labels.csv", "--dry-run"],
        ["import", project, tmp_path / "new.zip", "--yes"],
        ["import", tmp_path / "another", tmp_path / "new.zip", "--yes"],
        ["predictions", project, tmp_path / "scores.csv", "--name", "m"],
        ["decide", project, "00.jpg", "fox", "absent"],
        ["audit", project, "--cells", 20],
        ["members", "add", project, "Ann"],
        ["tokens", "make", project, "x"],
        ["backup", project, tmp_path / "backup"],
    ]
    told = run(4096, *commands)
    wrong = [f"{command[:2]}: {trace[-300:]}" for command, (_, trace) in zip(commands, told, strict=True) if trace]
    wrong += [
        f"{command[:2]}: {said[-300:]!r}"
        for command, (said, _) in zip(commands, told, strict=True)
        if "could not be written" not in said and "Free some space" not in said and "cannot be brought" not in said
    ]
    assert not wrong, "\n".join(wrong)
    db = Database(project)
    assert before == (db.rows("SELECT * FROM decision"), db.rows("SELECT * FROM class"), db.rows("SELECT * FROM image"))
    assert not list(project.glob("import-*"))


@pytest.mark.slow
def test_commands_report_unusual_paths_without_a_traceback(project, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "labels.csv").write_text("image,class,state\n00.jpg,fox,present\n")
    (tmp_path / "scores.csv").write_text("image,class,score\n00.jpg,fox,0.5\n")
    odd = {
        "surrogate": f"{tmp_path}/\udce9\udcff",
        "lone surrogate": f"{tmp_path}/\ud800",
        "zero": f"{tmp_path}/a\0b",
        "long": f"{tmp_path}/{'x' * 300}",
        "deep": f"{tmp_path}/{'/'.join(['y' * 200] * 25)}",
        "below a file": tmp_path / "file" / "a",
    }
    commands = []
    for path in odd.values():
        commands += [[name, path, *OF_A_PROJECT[name]] for name in OF_A_PROJECT]
        commands += [
            ["init", tmp_path / "new", "--images", path],
            ["init", tmp_path / "new", "--images", tmp_path / "nothing", "--classes", path],
            ["import", project, path, "--yes"],
            ["import", project, tmp_path / "labels.csv", "--class-map", path, "--yes"],
            ["import", project, tmp_path / "labels.csv", "--images", path, "--yes"],
            ["decide", project, path, "fox", "present"],
            ["decide", project, "00.jpg", path, "present"],
            ["decide", project, "00.jpg", "fox", "present", "--annotator", path],
            ["history", project, path],
            ["export", project, path],
            ["export", project, f"{path}.csv"],
            ["export", project, path, "--format", "coco"],
            ["export", project, tmp_path / "e.csv", "--tag", path],
            ["predictions", project, path, "--name", "m"],
            ["predictions", project, tmp_path / "scores.csv", "--name", path],
            ["backup", project, path],
            ["restore", path, tmp_path / "r"],
            ["restore", tmp_path / "nothing", path],
            ["classes", "list", path],
            ["tokens", "make", project, path],
            ["members", "add", project, path],
        ]
    told = run(0, *commands)
    wrong = [
        f"{[str(word)[-30:] for word in command]}: {trace[-250:]}"
        for command, (_, trace) in zip(commands, told, strict=True)
        if trace
    ]
    assert not wrong, "\n".join(wrong)


def test_translate_error_returns_none_for_program_errors():
    assert (
        system_errors.translate_error(KeyError("x")) is None and system_errors.translate_error(ValueError("x")) is None
    )
    assert system_errors.translate_error(FileNotFoundError(2, "No such file", "/x")) is None

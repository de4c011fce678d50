"""A backup is of one moment and whole, or not there; a restore brings back exactly that, or nothing."""

import json
import os
import stat

import pytest
from harness.answers import answer_cell

from annotator.errors import AnnotatorError
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.upkeep import backup, consistency, restoring


@pytest.fixture
def filled(project):
    """The project with decisions, and files of every kind that is kept or left out."""
    db = Database(project)
    answer_cell(db, 1, 1), answer_cell(db, 2, 2, -1)
    for name in (
        "tags/1.safetensors",
        "predictions/1/1/scores.npy",
        "imported/zip/a.jpg",
        "adapted/mine/model",
        "features/net/shard",
        "runs/1/head.safetensors",
        "predictions/names/w/x.npy",
        "tags/.half.part",
        "adapted/.mine.half.part/model",
        "tags/.half.part-journal",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"content of {name}")
    (project / "imported" / "link").symlink_to("/etc/passwd")
    (project / "secret").write_text("secret")
    db.close()
    return project


def contents(project) -> list:
    db = Database(project)
    rows = [db.rows(f"SELECT * FROM {name} ORDER BY 1, 2") for name in ("decision", "label", "image", "tally", "file")]
    assert consistency.find_problems(db) == []
    db.close()
    return rows


def test_restore_returns_files_that_cannot_be_recomputed_and_backup_lists_the_rest(annotator, filled, tmp_path):
    told = annotator("backup", filled, tmp_path / "kept").stdout
    assert "secret: " in told and "features: " in told and "predictions/names: " in told
    annotator("restore", tmp_path / "kept", tmp_path / "again")
    found = {
        path.relative_to(tmp_path / "again").as_posix() for path in (tmp_path / "again").rglob("*") if path.is_file()
    }
    assert found == {
        *("project.db", "tags/1.safetensors", "predictions/1/1/scores.npy", "imported/zip/a.jpg", "adapted/mine/model")
    }
    assert (tmp_path / "again" / "imported/zip/a.jpg").read_text() == "content of imported/zip/a.jpg"
    assert contents(tmp_path / "again") == contents(filled)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_backups_and_restored_projects_are_readable_only_by_their_owner(filled, tmp_path):
    backup.create_backup(filled, tmp_path / "kept")
    restoring.restore(tmp_path / "kept", tmp_path / "again")
    for folder in (tmp_path / "kept", tmp_path / "again"):
        for path in (folder, *folder.rglob("*")):
            if path.suffix != ".lock":
                assert not stat.S_IMODE(path.stat().st_mode) & 0o077 or not path.is_file(), path
        assert not stat.S_IMODE(folder.stat().st_mode) & 0o077


def test_second_backup_stores_only_changed_files_and_the_first_remains_restorable(filled, tmp_path):
    first = backup.create_backup(filled, tmp_path / "kept")
    assert backup.create_backup(filled, tmp_path / "kept").new_files == 0
    before = contents(filled)
    answer_cell(Database(filled), 3, 1)
    (filled / "tags/2.safetensors").write_text("new")
    assert backup.create_backup(filled, tmp_path / "kept").new_files == 2, "project.db and the new tag"
    restoring.restore(tmp_path / "kept", tmp_path / "old", first.manifest.stem)
    restoring.restore(tmp_path / "kept", tmp_path / "new")
    assert contents(tmp_path / "old") == before and contents(tmp_path / "new") == contents(filled)


def test_backup_during_concurrent_decisions_is_a_consistent_snapshot(filled, tmp_path):
    db = Database(filled)
    given = 0

    def decide(what, done, of):
        nonlocal given
        given += 1
        decisions.save(db, [Decision(f"beside-{given}", "label", "Ann", "click", 1 + given % 20, 1 + given % 3, 1)])

    backup.database_copies.PAGES_PER_STEP, pages = 1, backup.database_copies.PAGES_PER_STEP
    try:
        backup.create_backup(filled, tmp_path / "kept", decide)
    finally:
        backup.database_copies.PAGES_PER_STEP = pages
    assert given > 20
    restoring.restore(tmp_path / "kept", tmp_path / "again")
    assert len(contents(tmp_path / "again")[0]) == 2, "none of those given while it was copied"


def test_restore_accepts_only_a_new_or_empty_folder(annotator, filled, tmp_path):
    backup.create_backup(filled, tmp_path / "kept")
    before = contents(filled)
    assert "not empty" in annotator("restore", tmp_path / "kept", filled, code=1).stderr
    assert contents(filled) == before
    (tmp_path / "empty").mkdir()
    annotator("restore", tmp_path / "kept", tmp_path / "empty")
    assert "lie in each other" in annotator("backup", filled, filled / "in", code=1).stderr
    assert "other things" in annotator("backup", filled, filled.parent / "photos", code=1).stderr
    assert "no complete backup" in annotator("restore", tmp_path / "photos", tmp_path / "x", code=1).stderr


def test_restore_refuses_malicious_and_damaged_backups_without_writing_files(filled, tmp_path):
    made = backup.create_backup(filled, tmp_path / "kept")
    good = json.loads(made.manifest.read_text())
    outside = tmp_path / "outside"
    for bad in (
        "../outside",
        "/etc/x",
        "imported/../../outside",
        "imported//x",
        "runs/1/head",
        "secret",
        "imported\\..\\x",
        "imported/%2e%2e/../x",
        "imported/a\0b",
        "PROJECT.DB",
    ):
        row = {"path": bad, "sha256": good["parts"][0]["sha256"], "bytes": good["parts"][0]["bytes"]}
        made.manifest.write_text(json.dumps(good | {"parts": [*good["parts"], row]}))
        with pytest.raises(AnnotatorError, match="not written by annotator backup"):
            restoring.restore(tmp_path / "kept", tmp_path / "again")
    for text in ("", "[]", "{}", '{"version": 1, "parts": [[]]}', "[" * 100_000):
        made.manifest.write_text(text)
        with pytest.raises(AnnotatorError, match="no whole manifest"):
            restoring.restore(tmp_path / "kept", tmp_path / "again")
    made.manifest.write_text(json.dumps(good))
    tag = next(row for row in good["parts"] if row["path"].startswith("tags/"))
    part = tmp_path / "kept" / "parts" / tag["sha256"][:2] / tag["sha256"]
    content = part.read_bytes()
    for spoil, told in (
        (lambda: part.write_bytes(content[:-1]), "bytes"),
        (lambda: part.write_bytes(content[:-1] + b"!"), "another content"),
        (lambda: (part.unlink(), part.symlink_to("/etc/passwd")), "bytes"),
        (part.unlink, "missing"),
    ):
        spoil()
        with pytest.raises(AnnotatorError, match=told):
            restoring.restore(tmp_path / "kept", tmp_path / "again")
    assert not (tmp_path / "again").exists() and not outside.exists()
    assert not list(tmp_path.glob(".again*")), "nothing is left beside it"


def test_pruning_keeps_the_newest_backup_restorable(annotator, filled, tmp_path):
    kept = tmp_path / "kept"
    annotator("backup", filled, kept)
    (filled / "tags" / "1.safetensors").write_text("another content")
    db = Database(filled)
    answer_cell(db, 3, 1)
    db.close()
    before = contents(filled)
    told = annotator("backup", filled, kept, "--keep", "1").stdout
    assert "Removed: 1 older backup" in told and len(restoring.list_manifests(kept)) == 1
    annotator("restore", kept, tmp_path / "again")
    assert contents(tmp_path / "again") == before
    assert (tmp_path / "again" / "tags" / "1.safetensors").read_text() == "another content"
    parts = list((kept / "parts").glob("??/*"))
    assert {path.name for path in parts} == {
        part["sha256"] for part in json.loads(restoring.list_manifests(kept)[0].read_text())["parts"]
    }


def test_pruning_deletes_nothing_when_a_manifest_is_unreadable(filled, tmp_path):
    kept = tmp_path / "kept"
    for _ in range(3):
        backup.create_backup(filled, kept)
    restoring.list_manifests(kept)[-1].write_text("{")
    files = sorted(path for path in kept.rglob("*") if path.is_file())
    with pytest.raises(AnnotatorError, match="cannot be read"):
        backup.prune(kept, 2)
    assert sorted(path for path in kept.rglob("*") if path.is_file()) == files
    with pytest.raises(AnnotatorError, match="At least the newest"):
        backup.prune(kept, 0)

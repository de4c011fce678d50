"""Merges of classes and their undo, backups and restores."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from annotator.store.classes import class_changes, class_history
from annotator.store.database.database import Database
from annotator.store.upkeep import backup, restoring
from benchmarks.faults.scenes.scene import Scene, read_comparable_contents, save_decision


class Merge(Scene):
    """A merge of two classes; a kill must leave all of it or nothing, and its undo must restore the old state."""

    name, is_repeatable = "merge", False

    @override
    def build_command(self) -> Sequence[object]:
        return ["classes", "merge", self.project, "class 2", "--into", "class 1", "--yes"]

    @override
    def read_state(self) -> Any:
        return read_comparable_contents(self.project)

    @override
    def check_completed(self) -> list[str]:
        merged = self.read_state()
        db = Database(self.project)
        class_history.undo_change(db, "Ann")
        db.close()
        undone = self.read_state()
        labels = [row for row in undone["labels"] if row[1] == 2]
        wrong = [] if labels and merged["labels"] != undone["labels"] else ["The undo of a merge gave nothing back."]
        return wrong + self.check_always()


class UndoMerge(Scene):
    """The undo of a merge."""

    name, is_repeatable = "undo_of_merge", False

    @override
    def make(self) -> None:
        super().make()
        db = Database(self.project)
        class_changes.merge(db, "Ann", [2], 1, same=True)
        db.close()

    @override
    def build_command(self) -> Sequence[object]:
        return ["classes", "undo", self.project]

    @override
    def read_state(self) -> Any:
        return read_comparable_contents(self.project)


class Backup(Scene):
    """A second backup into a folder; a kill must leave the first one, and every listed backup must be restorable."""

    name = "backup"

    @override
    def make(self) -> None:
        super().make()
        backup.create_backup(self.project, self.folder / "kept")
        self.change_project()

    def change_project(self) -> None:
        """Change the project, so that the next backup has something new to copy."""
        db = Database(self.project)
        number = db.value("SELECT count(*) FROM decision")
        save_decision(db, f"later-{number}", image=3)
        db.close()
        tags = self.project / "tags"
        tags.mkdir(exist_ok=True)
        (tags / f"{number}.safetensors").write_text("content")

    @override
    def build_command(self) -> Sequence[object]:
        return ["backup", self.project, self.folder / "kept"]

    @override
    def read_state(self) -> Any:
        found: list[Any] = []
        for manifest in restoring.list_manifests(self.folder / "kept"):
            with tempfile.TemporaryDirectory() as place:
                restoring.restore(self.folder / "kept", Path(place) / "again", manifest.stem)
                tags = {path.name: path.read_text() for path in Path(place).glob("again/tags/*")}
                one = [read_comparable_contents(Path(place) / "again"), tags]
            found += [one] if one not in found[-1:] else []
        return found


class Prune(Backup):
    """A backup that deletes all older ones."""

    name = "backup_keep"

    @override
    def make(self) -> None:
        super().make()
        backup.create_backup(self.project, self.folder / "kept")
        self.change_project()

    @override
    def build_command(self) -> Sequence[object]:
        return [*super().build_command(), "--keep", 1]

    @override
    def is_allowed(self, state: Any, before: Any, after: Any) -> bool:
        every = before + after
        return state == before or (state[-1:] == after and state == every[-len(state) :])


class Restore(Scene):
    """A restore of a backup into a folder beside the project."""

    name, is_repeatable = "restore", False

    @override
    def make(self) -> None:
        super().make()
        (self.project / "tags").mkdir()
        (self.project / "tags" / "1.safetensors").write_text("content")
        backup.create_backup(self.project, self.folder / "kept")

    @override
    def build_command(self) -> Sequence[object]:
        return ["restore", self.folder / "kept", self.folder / "again"]

    @override
    def read_state(self) -> Any:
        again = self.folder / "again"
        return (read_comparable_contents(again), len(list(again.glob("tags/*")))) if again.exists() else None

    @override
    def check_completed(self) -> list[str]:
        return (
            []
            if self.read_state() == (read_comparable_contents(self.project), 1)
            else ["What was restored is not what was backed up."]
        )

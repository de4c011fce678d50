"""Exports over an older export of the same name: a file, a tagged one, folders with images, shards, and the page's."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from annotator.errors import AnnotatorError
from annotator.exchange.exports import destination, export_writer
from annotator.exchange.exports.choices import Choices
from annotator.store.database.database import Database
from annotator.store.labels import tagged_exports
from annotator.ui.shared.work.export_runner import ExportRequest, get_export_runner
from benchmarks.faults.scenes.scene import Scene, compute_digests, save_decision

DATED_FILES = ("data_card.json", "data_card.md")  # files of a folder that say when they were written


class SingleFile(Scene):
    """An export of one file with companion files, all of one moment: a kill must leave the old set or the new one."""

    name = "export_file"
    target = "out/labels.csv"
    options: Sequence[object] = ()
    choices: ClassVar[dict[str, Any]] = {}

    @override
    def make(self) -> None:
        super().make()
        db = Database(self.project)
        self.export_path.parent.mkdir()
        kind = self.options[1] if self.options else "csv"
        export_writer.export_data_set(db, self.export_path, str(kind), Choices(**self.choices), lossy=True)
        save_decision(db, "later", image=3, state=-1)
        save_decision(db, "flagged", "flag", image=4, note="odd")
        db.close()
        self.before = self.compute_file_digests()

    @property
    def export_path(self) -> Path:
        """Return the path of the exported file."""
        return self.folder / self.target

    @override
    def build_command(self) -> Sequence[object]:
        return ["export", self.project, self.export_path, *self.options]

    def compute_file_digests(self) -> dict[str, str]:
        """Return the digest of every file in the folder of the export, by name."""
        return compute_digests(self.export_path.parent)

    @override
    def read_state(self) -> Any:
        there = {name: digest for name, digest in self.compute_file_digests().items() if ".part" not in name}
        return {name: "old" if self.before.get(name) == digest else "new" for name, digest in there.items()}

    @override
    def is_allowed(self, state: Any, before: Any, after: Any) -> bool:
        # Files of one folder are renamed one after the other: what is begun is finished by the next export.
        return state in (before, after) or any(self.export_path.parent.glob(".*.renaming.part"))

    @override
    def check_completed(self) -> list[str]:
        names = [
            self.export_path,
            *(path for path in self.export_path.parent.iterdir() if path.stem.startswith("labels.")),
        ]
        names.sort(key=lambda path: path.name.endswith(".card.json"))
        return destination.find_problems(names, False)


class TaggedFile(SingleFile):
    """An export into a single file under a tag; a tag must have all of its cells or must not exist."""

    name, is_repeatable = "export_tagged", False
    options = ("--format", "csv", "--tag", "v1")

    @override
    def read_state(self) -> Any:
        return super().read_state(), len(self._list_tag_problems())

    @override
    def is_allowed(self, state: Any, before: Any, after: Any) -> bool:
        return super().is_allowed(state, before, after) or state == (after[0], 0)

    @override
    def check_always(self) -> list[str]:
        return super().check_always() + [
            f"a tag without its cells: {each}" for each in self._list_tag_problems() if each
        ]

    def _list_tag_problems(self) -> list[str]:
        db, found = Database(self.project), []
        for tag in tagged_exports.load_tags(db):
            try:
                tagged_exports.read_cells(tagged_exports.get_cells_path(db, tag.id))
                found.append("")
            except AnnotatorError as error:
                found.append(str(error))
        db.close()
        return found


class CopiedFolder(SingleFile):
    """An export into a folder with a copy of each image; a kill must leave the old folder or the new one, complete."""

    name = "export_folder"
    target = "out/set"
    choices: ClassVar[dict[str, Any]] = {"images": "copy"}
    options = ("--format", "voc", "--images", "copy", "--lossy")

    @override
    def compute_file_digests(self) -> dict[str, str]:
        return compute_digests(self.export_path)

    @override
    def read_state(self) -> Any:
        there = self.compute_file_digests()
        if not there:
            return "nothing"
        if destination.find_folder_problems(
            self.export_path, [self.export_path / name for name in reversed(DATED_FILES)]
        ):
            return "in parts"
        return "old" if there == self.before else "new"

    @override
    def is_allowed(self, state: Any, before: Any, after: Any) -> bool:
        return state in (before, after)

    @override
    def check_completed(self) -> list[str]:
        return [] if self.read_state() == "new" else [f"The export is {self.read_state()}"]


class LinkedFolder(CopiedFolder):
    """An export into a folder with a hard link to each image."""

    name = "export_links"
    choices: ClassVar[dict[str, Any]] = {"images": "link"}
    options = ("--format", "voc", "--images", "link", "--lossy")


class Shards(CopiedFolder):
    """An export into archives that contain the images."""

    name = "export_shards"
    options = ("--format", "webdataset", "--images", "copy", "--lossy")


class DownloadedZip(Scene):
    """An export to a zip for download by the Export page; the next export removes the remains of a killed one."""

    name = "export_zip"
    loads = ("annotator.ui.shared.work.export_runner",)
    on_server = ""

    @override
    def build_command(self) -> Sequence[object]:
        return ["call", f"{__name__}:export_as_page", self.project, "set", self.on_server]

    @override
    def read_state(self) -> Any:
        return None

    @override
    def check_completed(self) -> list[str]:
        files = [path for path in (self.project / "downloads").rglob("*") if path.is_file()]
        if [path.name for path in files] != ["set.zip"] or zipfile.ZipFile(files[0]).testzip() is not None:
            return [f"downloads holds {[path.name for path in files]}, not one whole zip"]
        return []


class FolderOnServer(DownloadedZip):
    """An export by the Export page into a folder of the server."""

    name, is_repeatable, on_server = "export_on_server", False, "yes"

    @override
    def read_state(self) -> Any:
        target = self.project / "exports" / "set"
        if not target.exists():
            return "nothing"
        problems = destination.find_folder_problems(target, [target / name for name in reversed(DATED_FILES)])
        return "in parts" if problems else "new"

    @override
    def check_completed(self) -> list[str]:
        db = Database(self.project)
        get_export_runner(db)  # as the next server does when it starts
        db.close()
        wrong = [f"downloads holds {path.name}" for path in (self.project / "downloads").iterdir()]
        return wrong + ([] if self.read_state() == "new" else [f"The export is {self.read_state()}"])


def export_as_page(project: str, name: str, on_server: str) -> None:
    """Export as the Export page does, and wait until it is done.

    Raises:
        AnnotatorError: The export failed.
    """
    db = Database(Path(project))
    written = get_export_runner(db)
    written.start(ExportRequest("voc", Choices(images="copy"), name, bool(on_server), lossy=True))
    written.wait()
    if error := written.outcomes[0].error:
        raise AnnotatorError(error)

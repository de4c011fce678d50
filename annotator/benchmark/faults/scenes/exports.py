"""Exports over an older export of the same name: a file, a tagged one, folders with images, shards, and the page's."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from annotator.benchmark.faults.scenes.scene import Scene, decide, digests
from annotator.errors import AnnotatorError
from annotator.exchange.exports import destination, export
from annotator.exchange.exports.choices import Choices
from annotator.store.database.database import Database
from annotator.store.labels import tagged_exports as tags
from annotator.ui.export.running import Order, exporting

TIMES = ("data_card.json", "data_card.md")  # files of a folder that say when they were written


class SingleFile(Scene):
    """An export of one file with companion files, all of one moment: a kill must leave the old set or the new one."""

    name = "export_file"
    target = "out/labels.csv"
    options: Sequence[object] = ()
    chosen: ClassVar[dict[str, Any]] = {}

    @override
    def make(self) -> None:
        super().make()
        db = Database(self.project)
        self.path.parent.mkdir()
        kind = self.options[1] if self.options else "csv"
        export.export(db, self.path, str(kind), Choices(**self.chosen), lossy=True)
        decide(db, "later", image=3, state=-1)
        decide(db, "flagged", "flag", image=4, note="odd")
        db.close()
        self.before = self.contents()

    @property
    def path(self) -> Path:
        """Return the path of the exported file."""
        return self.folder / self.target

    @override
    def words(self) -> Sequence[object]:
        return ["export", self.project, self.path, *self.options]

    def contents(self) -> dict[str, str]:
        """Return the digest of every file in the folder of the export, by name."""
        return digests(self.path.parent)

    @override
    def state(self) -> Any:
        there = {name: digest for name, digest in self.contents().items() if ".part" not in name}
        return {name: "old" if self.before.get(name) == digest else "new" for name, digest in there.items()}

    @override
    def allowed(self, state: Any, before: Any, after: Any) -> bool:
        # Files of one folder are renamed one after the other: what is begun is finished by the next export.
        return state in (before, after) or any(self.path.parent.glob(".*.renaming.part"))

    @override
    def check_completed(self) -> list[str]:
        names = [self.path, *(path for path in self.path.parent.iterdir() if path.stem.startswith("labels."))]
        names.sort(key=lambda path: path.name.endswith(".card.json"))
        return destination.problems(names, False)


class TaggedFile(SingleFile):
    """An export into a single file under a tag; a tag must have all of its cells or must not exist."""

    name, repeated = "export_tagged", False
    options = ("--format", "csv", "--tag", "v1")

    @override
    def state(self) -> Any:
        return super().state(), len(self._tags())

    @override
    def allowed(self, state: Any, before: Any, after: Any) -> bool:
        return super().allowed(state, before, after) or state == (after[0], 0)

    @override
    def check_always(self) -> list[str]:
        return super().check_always() + [f"a tag without its cells: {each}" for each in self._tags() if each]

    def _tags(self) -> list[str]:
        db, found = Database(self.project), []
        for tag in tags.all_tags(db):
            try:
                tags.read_cells(tags.path_of(db, tag.id))
                found.append("")
            except AnnotatorError as error:
                found.append(str(error))
        db.close()
        return found


class CopiedFolder(SingleFile):
    """An export into a folder with a copy of each image; a kill must leave the old folder or the new one, complete."""

    name = "export_folder"
    target = "out/set"
    chosen: ClassVar[dict[str, Any]] = {"images": "copy"}
    options = ("--format", "voc", "--images", "copy", "--lossy")

    @override
    def contents(self) -> dict[str, str]:
        return digests(self.path)

    @override
    def state(self) -> Any:
        there = self.contents()
        if not there:
            return "nothing"
        if destination.problems_of_folder(self.path, [self.path / name for name in reversed(TIMES)]):
            return "in parts"
        return "old" if there == self.before else "new"

    @override
    def allowed(self, state: Any, before: Any, after: Any) -> bool:
        return state in (before, after)

    @override
    def check_completed(self) -> list[str]:
        return [] if self.state() == "new" else [f"The export is {self.state()}"]


class LinkedFolder(CopiedFolder):
    """An export into a folder with a hard link to each image."""

    name = "export_links"
    chosen: ClassVar[dict[str, Any]] = {"images": "link"}
    options = ("--format", "voc", "--images", "link", "--lossy")


class Shards(CopiedFolder):
    """An export into archives that contain the images."""

    name = "export_shards"
    options = ("--format", "webdataset", "--images", "copy", "--lossy")


class DownloadedZip(Scene):
    """An export to a zip for download by the Export page; the next export removes the remains of a killed one."""

    name = "export_zip"
    loads = ("annotator.ui.export.running",)
    on_server = ""

    @override
    def words(self) -> Sequence[object]:
        return ["call", f"{__name__}:export_as_page", self.project, "set", self.on_server]

    @override
    def state(self) -> Any:
        return None

    @override
    def check_completed(self) -> list[str]:
        files = [path for path in (self.project / "downloads").rglob("*") if path.is_file()]
        if [path.name for path in files] != ["set.zip"] or zipfile.ZipFile(files[0]).testzip() is not None:
            return [f"downloads holds {[path.name for path in files]}, not one whole zip"]
        return []


class FolderOnServer(DownloadedZip):
    """An export by the Export page into a folder of the server."""

    name, repeated, on_server = "export_on_server", False, "yes"

    @override
    def state(self) -> Any:
        target = self.project / "exports" / "set"
        if not target.exists():
            return "nothing"
        problems = destination.problems_of_folder(target, [target / name for name in reversed(TIMES)])
        return "in parts" if problems else "new"

    @override
    def check_completed(self) -> list[str]:
        db = Database(self.project)
        exporting(db)  # as the next server does when it starts
        db.close()
        wrong = [f"downloads holds {path.name}" for path in (self.project / "downloads").iterdir()]
        return wrong + ([] if self.state() == "new" else [f"The export is {self.state()}"])


def export_as_page(project: str, name: str, on_server: str) -> None:
    """Export as the Export page does, and wait until it is done.

    Raises:
        AnnotatorError: The export failed.
    """
    db = Database(Path(project))
    written = exporting(db)
    written.start(Order("voc", Choices(images="copy"), name, bool(on_server), lossy=True))
    written.wait()
    if error := written.outcomes[0].error:
        raise AnnotatorError(error)

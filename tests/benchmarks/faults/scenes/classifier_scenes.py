"""The export of a classifier over an older one."""

import shutil
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from annotator.exchange.exports.thresholds import Limits
from annotator.store.database.database import Database
from annotator.store.networks import configuration
from annotator.worker.process import run_worker
from annotator.worker.taking_home.classifier_writer import write_classifier
from benchmarks.faults.scenes.adaptation_scenes import make_adaptable_project
from benchmarks.faults.scenes.scene import Scene, compute_digests, save_decision


class ClassifierExport(Scene):
    """An export of weights, description and card over older ones; a kill must leave the old set or the new one."""

    name = "classifier"
    loads = ("torch", "timm", "annotator.worker.process", "annotator.worker.taking_home.classifier_writer")

    @override
    def make(self) -> None:
        made = self.folder.with_name("made to classify")
        if not made.exists():
            make_adaptable_project(made)
        shutil.copytree(made, self.folder, dirs_exist_ok=True)
        db = Database(self.project)
        configuration.set_backbone(db, f"local-dir:{self.folder / 'network'}")
        run_worker(self.project, once=True)
        (self.folder / "out").mkdir()
        write_classifier(self.project, self.folder / "out" / "mine.safetensors", Limits(0.05))
        save_decision(db, "later", image=3, state=-1)
        db.close()
        run_worker(self.project, once=True)
        self.before = compute_digests(self.folder / "out")

    @override
    def build_command(self) -> Sequence[object]:
        return ["classifier", self.project, self.folder / "out" / "mine.safetensors", "--overwrite"]

    @override
    def read_state(self) -> Any:
        there = compute_digests(self.folder / "out")
        return {
            name: "old" if self.before.get(name) == digest else "new"
            for name, digest in there.items()
            if ".part" not in name
        }

    @override
    def is_allowed(self, state: Any, before: Any, after: Any) -> bool:
        # Files of one folder are renamed one after the other: what is begun is finished by the next export.
        return state in (before, after) or any((self.folder / "out").glob(".*.renaming.part"))

    @override
    def check_completed(self) -> list[str]:
        state = self.read_state()
        return [] if len(state) == 3 and set(state.values()) == {"new"} else [f"The classifier is {state}."]

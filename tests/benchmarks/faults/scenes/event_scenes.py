"""Finding of events by time: the first search, and a search with another gap."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import projects
from typing_extensions import override

from annotator.store.database.database import Database
from annotator.store.events import project_events
from benchmarks.faults.scenes.scene import Scene, save_decision

SCENE_EVENTS, EVENT_IMAGES = 12, 4  # events of the scene, and images of each
SECONDS_APART, MINUTES_APART = 10, 30  # between the images of an event, and between events


class FindEvents(Scene):
    """The first search for events; a kill must leave no events, or those of all images."""

    name = "find_events"

    @override
    def make(self) -> None:
        projects.write_noise_images(self.folder / "images", SCENE_EVENTS * EVENT_IMAGES, (32, 24))
        for number, path in enumerate(sorted((self.folder / "images").iterdir())):
            event, frame = divmod(number, EVENT_IMAGES)
            hours, minutes = divmod(event * MINUTES_APART, 60)
            path.rename(path.with_name(f"20240501_{hours:02}{minutes:02}{frame * SECONDS_APART:02}.png"))
        db = projects.make_empty_project(self.folder, 2)
        save_decision(db, "made", image=3)
        db.close()

    @override
    def build_command(self) -> Sequence[object]:
        return ["events", self.project]

    @override
    def read_state(self) -> Any:
        return read_events(self.project)

    @override
    def check_completed(self) -> list[str]:
        events = {row[1] for row in self.read_state()[0]}
        return [] if len(events) == self.count_events() else [f"There are {len(events)} events."]

    def count_events(self) -> int:
        """Return how many events the finished command finds."""
        return SCENE_EVENTS


class ChangeGap(FindEvents):
    """A change of the gap, after which all images are one event; a kill must leave the old events or the new one."""

    name = "change_gap"

    @override
    def make(self) -> None:
        super().make()
        db = Database(self.project)
        project_events.find_and_save(db)
        db.close()

    @override
    def build_command(self) -> Sequence[object]:
        return ["events", self.project, "--gap", "1h"]

    @override
    def count_events(self) -> int:
        return 1


def read_events(project: Path) -> tuple[list[tuple], list[tuple]]:
    """Return the stored events, and the changes that people made to them, without times."""
    db = Database(project)
    try:
        changes = "SELECT id, action, seconds FROM event_edit ORDER BY id"
        return db.tuples("SELECT image_id, event_id, frame FROM image_event ORDER BY 1"), db.tuples(changes)
    finally:
        db.close()

"""What a project's images show, and what people have answered of them: at the end both are what the store holds."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, project_counts


@dataclass
class Book:
    """The truth, and what was given last to every image-class pair."""

    truth: dict[int, set[int]]
    class_ids: list[int]
    given: dict[tuple[int, int], int] = field(default_factory=dict)
    actions: Counter[str] = field(default_factory=Counter)
    remarks: list[int] = field(default_factory=list)  # images with a flag and a comment

    def state(self, image: int, class_id: int) -> int:
        return 1 if class_id in self.truth[image] else -1

    def give(self, page: str, image: int, class_id: int, state: int) -> None:
        self.given[image, class_id] = state
        self.actions[page] += 1

    def close(self, image: int, page: str = "annotate") -> None:
        """Nothing else is on this image."""
        for class_id in self.class_ids:
            self.given.setdefault((image, class_id), -1)
        self.actions[page] += 1

    def clear(self, page: str, image: int, class_id: int) -> None:
        del self.given[image, class_id]
        self.actions[page] += 1

    def missing(self, image: int) -> list[int]:
        return [class_id for class_id in sorted(self.truth[image]) if self.given.get((image, class_id)) != 1]

    def wrong(self) -> list[tuple[int, int]]:
        """Pairs whose last answer is not the truth."""
        return [pair for pair, state in self.given.items() if state != self.state(*pair)]

    def complete(self) -> bool:
        return len(self.given) == len(self.truth) * len(self.class_ids)

    def check(self, project: Path) -> None:
        """Every pair of the store is what was given last, and the truth. Raises AssertionError."""
        db = Database(project)
        stored = {(one.image_id, one.class_id): one.state for one in decisions.load_all_labels(db)}
        differ = {pair: (stored.get(pair), self.given.get(pair)) for pair, _ in stored.items() ^ self.given.items()}
        assert not differ, f"(image, class): (stored, given last): {differ}"
        assert self.wrong() == [] and self.complete()
        flagged = [row["id"] for row in project_counts.load_flagged_images(db)]
        assert flagged == self.remarks, "a flag is where it was put, and a comment beside it changed no label"


def book_of(db: Database, labels: dict[str, set[str]]) -> Book:
    """An empty book about a project. labels: image name -> names of the classes that it shows."""
    ids = {one.name: one.id for one in classes.load_active_classes(db)}
    truth = {one.id: {ids[name] for name in labels[one.name]} for one in images.load_all_images(db)}
    return Book(truth, list(ids.values()))

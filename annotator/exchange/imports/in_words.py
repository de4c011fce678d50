"""Sentences about planned, finished and undone imports, shared by the command line and the Import page.

Names of images and classes are not escaped in these sentences: the caller that shows them escapes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from annotator.exchange.imports.importing import Done, Plan
from annotator.shares import counted
from annotator.store.images.name_kinds import IN_WORDS
from annotator.store.images.registration import Registered
from annotator.store.imports.commit import Imported
from annotator.store.imports.imports import Undone
from annotator.store.imports.staged_cells import Preview, StagedClass, Tally

_WHY = {"synonym": "a synonym", "alike": "but for case and blanks", "mapped": "by your map"}


@dataclass(frozen=True)
class Line:
    """A number of a preview with its title. examples: the first cases, with their places in the source."""

    title: str
    count: int
    examples: Sequence[str] = ()

    @property
    def remaining(self) -> int:
        """Return the number of cases besides the examples; 0 if there are no examples."""
        return self.count - len(self.examples) if self.examples else 0


def format_in_words(plan: Plan) -> str:
    """Return a sentence with the format of the source, and how it was recognised."""
    return f"Format: {plan.format.name} ({plan.why})."


def lines(preview: Preview, conflicts: str) -> list[Line]:
    """Return the numbers of a preview that are not 0.

    Args:
        preview: The preview of an import.
        conflicts: As in importing.Choices.
    """
    stay = "kept" if conflicts == "keep" else "replaced"
    all_: list[tuple[str, int | Tally]] = [
        ("images in the project", preview.images_known),
        ("new images", preview.images_new.count),
        *((f"names found {IN_WORDS[kind]}", tally) for kind, tally in preview.found_by.items()),
        ("image files that the project has already (same content): not added", preview.copies),
        ("unknown images: left out", preview.images_unknown),
        ("images whose file was skipped: left out", preview.images_skipped),
        ("new answers", preview.answers_new),
        ("answers that the project has already", preview.answers_known),
        (f"answers that people gave differently: {stay}", preview.conflicts_with_people),
        (f"answers of earlier imports that differ: {stay}", preview.conflicts_with_imports),
        ("images on which all that is present is named", preview.completed),
        ("answers left out with their image or class", preview.left_out),
        ("answers filled in by a model or assumed: left out", preview.filled),
        ("facts about images", preview.attributes_new),
        (f"facts about images that differ: {stay}", preview.attributes_other),
        ("flags and comments", preview.remarks_new),
        ("scores: left out, to be added as predictions", preview.scores),
        ("labels of events (bursts): kept as such, no answers about single images", preview.event_labels),
    ]
    shown = [(title, value if isinstance(value, Tally) else Tally(value)) for title, value in all_]
    return [Line(title, tally.count, tally.examples) for title, tally in shown if tally.count]


def classes_in_words(preview: Preview) -> str:
    """Return a sentence with the number of classes that the source names."""
    known = sum(class_.how == "known" for class_ in preview.classes)
    others = len(preview.classes) - known
    return f"{counted(len(preview.classes), 'class', 'classes')}: {known:,} known, {others:,} others."


def class_in_words(class_: StagedClass) -> str:
    """Return how the import treats a class that is not simply known."""
    answers = counted(class_.answers, "answer")
    if class_.how == "unclear":
        return f"{class_.name}: needs a choice, by a class map ({answers})"
    if class_.how in ("new", "restored", "left out"):
        return f"{class_.how}: {class_.name} ({answers})"
    return f"{class_.name} -> {class_.target} ({_WHY.get(class_.how, class_.how)}, {answers})"


def registered_in_words(registered: Registered) -> str:
    """Return the counts of a registration in one line; added, known and skipped also if they are 0."""
    counts = [
        (registered.added, counted(registered.added, "image added", "images added")),
        (registered.known, f"{registered.known:,} already there"),
        (len(registered.bad), counted(len(registered.bad), "file skipped", "files skipped")),
        (registered.moved, f"{registered.moved:,} moved or renamed"),
        (registered.copies, counted(registered.copies, "duplicate")),
        (len(registered.missing), f"{len(registered.missing):,} missing"),
        (registered.passed_over, counted(registered.passed_over, "other file")),
    ]
    words = ", ".join(words for place, (count, words) in enumerate(counts) if count or place < 3)
    if registered.listed_at is None:
        return words
    listed = datetime.fromtimestamp(registered.listed_at).strftime("%Y-%m-%d %H:%M")
    return f"{words}; as listed at {listed}, before it was interrupted: look again for newer files"


def done_in_words(done: Done) -> list[str]:
    """Return a sentence about the images of a finished import, if it brought any, and one about its answers."""
    imported = done.imported
    images = [f"{registered_in_words(done.registered)}.", *done.registered.said()] if done.registered else []
    return [*images, f"Import {imported.id}: {_stored(imported)}."]


def _stored(imported: Imported) -> str:
    replaced = f" ({imported.replaced:,} replaced others)" if imported.replaced else ""
    counts = [
        (imported.completed, "image completed", "images completed"),
        (len(imported.classes), "class added", "classes added"),
        (imported.attributes, "fact about an image", "facts about images"),
        (imported.remarks, "flag or comment", "flags and comments"),
        (imported.event_labels, "label of an event", "labels of events"),
    ]
    return ", ".join([f"{counted(imported.answers, 'answer')}{replaced}", *(counted(*one) for one in counts if one[0])])


def unchanged_in_words(plan: Plan) -> str:
    """Return a sentence about a plan that was not carried out."""
    if not plan.changes:
        return "Nothing was changed. There is nothing new in it."
    if not plan.kept:
        return "Nothing was changed."
    folders = " and ".join(map(str, plan.kept))
    return f"Nothing was imported. What was unpacked or downloaded stays in {folders}; the same import finds it again."


def undone_in_words(undone: Undone) -> list[str]:
    """Return sentences about an import that was taken back, and about what stays of it."""
    return [f"Import {undone.id} taken back: {_taken(undone)}.", *_stays(undone)]


def undo_in_words(undone: Undone) -> list[str]:
    """Return sentences about what taking an import back would remove, and what would stay."""
    return [f"Would be taken back: {_taken(undone)}.", *_stays(undone)]


def _taken(undone: Undone) -> str:
    counts = [
        (undone.images, "image"),
        (undone.attributes, "fact about an image", "facts about images"),
        (undone.event_labels, "label of an event", "labels of events"),
    ]
    return ", ".join([counted(undone.decisions, "decision"), *(counted(*one) for one in counts if one[0])])


def _stays(undone: Undone) -> list[str]:
    said: list[str] = []
    if undone.images_kept:
        said.append(f"{counted(undone.images_kept, 'image')} of it stay: people decided something about them.")
    if undone.archived:
        said.append(f"Classes that it added, archived: {', '.join(undone.archived)}")
    if undone.kept:
        said.append(f"Classes that it added and others use stay: {', '.join(undone.kept)}")
    return said

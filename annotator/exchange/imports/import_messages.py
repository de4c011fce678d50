"""Sentences about imports for the command line and the Import page, which escape names in them."""

from collections.abc import Sequence
from dataclasses import dataclass

from annotator.exchange.imports.import_plan import ImportOutcome, ImportPlan
from annotator.humanize import format_count, format_local_minute
from annotator.store.images.name_kinds import KIND_DESCRIPTIONS
from annotator.store.images.registration import RegistrationResult
from annotator.store.imports.commit import ImportResult
from annotator.store.imports.past_imports import ImportUndo
from annotator.store.imports.staged_cells import ImportPreview, StagedClass, Tally

_MATCH_REASONS = {"synonym": "a synonym", "alike": "but for case and blanks", "mapped": "by your map"}


@dataclass(frozen=True)
class PreviewLine:
    """A line of an import preview: title, number of cases and first examples."""

    title: str
    count: int
    examples: Sequence[str] = ()

    @property
    def remaining(self) -> int:
        """Count the cases besides the examples, 0 without examples."""
        return self.count - len(self.examples) if self.examples else 0


def describe_format(plan: ImportPlan) -> str:
    return f"Format: {plan.format.name} ({plan.why})."


def list_preview_lines(preview: ImportPreview, conflicts: str) -> list[PreviewLine]:
    """Return one line per nonzero count of a preview."""
    stay = "kept" if conflicts == "keep" else "replaced"
    all_: list[tuple[str, int | Tally]] = [
        ("images in the project", preview.images_known),
        ("new images", preview.images_new.count),
        *((f"names found {KIND_DESCRIPTIONS[kind]}", tally) for kind, tally in preview.found_by.items()),
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
    return [PreviewLine(title, tally.count, tally.examples) for title, tally in shown if tally.count]


def describe_classes(preview: ImportPreview) -> str:
    known = sum(class_.how == "known" for class_ in preview.classes)
    others = len(preview.classes) - known
    return f"{format_count(len(preview.classes), 'class', 'classes')}: {known:,} known, {others:,} others."


def describe_class(class_: StagedClass) -> str:
    """Describe how a source class is imported: unclear, new, restored, left out or matched."""
    answers = format_count(class_.answers, "answer")
    if class_.how == "unclear":
        return f"{class_.name}: needs a choice, by a class map ({answers})"
    if class_.how in ("new", "restored", "left out"):
        return f"{class_.how}: {class_.name} ({answers})"
    return f"{class_.name} -> {class_.target} ({_MATCH_REASONS.get(class_.how, class_.how)}, {answers})"


def describe_registration(registered: RegistrationResult) -> str:
    counts = [
        (registered.added, format_count(registered.added, "image added", "images added")),
        (registered.known, f"{registered.known:,} already there"),
        (len(registered.bad), format_count(len(registered.bad), "file skipped", "files skipped")),
        (registered.moved, f"{registered.moved:,} moved or renamed"),
        (registered.copies, format_count(registered.copies, "duplicate")),
        (len(registered.missing), f"{len(registered.missing):,} missing"),
        (registered.passed_over, format_count(registered.passed_over, "other file")),
    ]
    words = ", ".join(words for place, (count, words) in enumerate(counts) if count or place < 3)
    if registered.listed_at is None:
        return words
    listed = format_local_minute(registered.listed_at)
    return f"{words}; as listed at {listed}, before it was interrupted: look again for newer files"


def describe_result(done: ImportOutcome) -> list[str]:
    imported = done.imported
    images = (
        [f"{describe_registration(done.registered)}.", *done.registered.format_sentences()] if done.registered else []
    )
    unread = (
        [f"{format_count(done.unread, 'answer')} not stored, because the images cannot be read."] if done.unread else []
    )
    return [*images, f"Import {imported.id}: {_describe_stored(imported)}.", *unread]


def _describe_stored(imported: ImportResult) -> str:
    replaced = f" ({imported.replaced:,} replaced others)" if imported.replaced else ""
    counts = [
        (imported.completed, "image completed", "images completed"),
        (len(imported.classes), "class added", "classes added"),
        (imported.attributes, "fact about an image", "facts about images"),
        (imported.remarks, "flag or comment", "flags and comments"),
        (imported.event_labels, "label of an event", "labels of events"),
    ]
    return ", ".join(
        [f"{format_count(imported.answers, 'answer')}{replaced}", *(format_count(*one) for one in counts if one[0])]
    )


def describe_unapplied_plan(plan: ImportPlan) -> str:
    if not plan.has_changes:
        return "Nothing was changed. There is nothing new in it."
    if not plan.kept_folders:
        return "Nothing was changed."
    folders = " and ".join(map(str, plan.kept_folders))
    return f"Nothing was imported. What was unpacked or downloaded stays in {folders}; the same import finds it again."


def describe_undone_import(undone: ImportUndo) -> list[str]:
    """Describe what the undo of an import removed and kept."""
    return [f"Import {undone.id} taken back: {_describe_removed(undone)}.", *_describe_kept(undone)]


def describe_undo(undone: ImportUndo) -> list[str]:
    """Describe what the undo of an import would remove and keep."""
    return [f"Would be taken back: {_describe_removed(undone)}.", *_describe_kept(undone)]


def _describe_removed(undone: ImportUndo) -> str:
    counts = [
        (undone.images, "image"),
        (undone.attributes, "fact about an image", "facts about images"),
        (undone.event_labels, "label of an event", "labels of events"),
    ]
    return ", ".join([format_count(undone.decisions, "decision"), *(format_count(*one) for one in counts if one[0])])


def _describe_kept(undone: ImportUndo) -> list[str]:
    said: list[str] = []
    if undone.images_kept:
        said.append(f"{format_count(undone.images_kept, 'image')} of it stay: people decided something about them.")
    if undone.archived:
        said.append(f"Classes that it added, archived: {', '.join(undone.archived)}")
    if undone.kept:
        said.append(f"Classes that it added and others use stay: {', '.join(undone.kept)}")
    return said

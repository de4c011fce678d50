"""Several label files of one format joined into one source."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.shared.split_names import SPLIT_FOLDER_NAMES
from annotator.exchange.reading.reading_options import Interpretation
from annotator.records import ABSENT
from annotator.store.pictures.files import looks_like_image


def join_contents(files: Sequence[Path], each: Sequence[Contents], folder: Path | None) -> Contents:
    """Return the contents of all files as one. An image name is looked up next to its label file, then in `folder`."""
    classes = {name: about for contents in reversed(each) for name, about in contents.classes}
    ordered = dict.fromkeys(name for contents in each for name, _ in contents.classes)
    sentences, interpretations = _join_sentences(each), _join_interpretations(files, each)
    return Contents(
        [(name, classes[name]) for name in ordered],
        _iter_items(files, each, folder, sentences, interpretations),
        folder=each[0].folder,
        place=each[0].place,
        sentences=sentences,
        interpretations=interpretations,
        roles=list({one.field: one for contents in reversed(each) for one in contents.roles}.values()),
    )


def _join_interpretations(files: Sequence[Path], each: Sequence[Contents]) -> list[Interpretation]:
    decided: dict[tuple[str, str], Interpretation] = {}
    for file, contents in zip(files, each, strict=True):
        for one in contents.interpretations:
            twin = decided.setdefault((one.field, one.value), one)
            if not one.is_sure and twin.is_sure:
                decided[one.field, one.value] = one._replace(why=f"{file.parent.name}/{file.name}: {one.why}")
    return list(decided.values())


def _join_sentences(each: Sequence[Contents]) -> list[str]:
    return list(dict.fromkeys(sentence for contents in each for sentence in contents.sentences))


def _iter_items(
    files: Sequence[Path],
    each: Sequence[Contents],
    folder: Path | None,
    sentences: list[str],
    interpretations: list[Interpretation],
) -> Iterator[Item]:
    are_all = len({frozenset(name for name, _ in contents.classes) for contents in each}) == 1
    for file, contents in zip(files, each, strict=True):
        beside = file.parent.relative_to(folder).as_posix() if folder and file.is_relative_to(folder) else ""
        holds_images = any(looks_like_image(entry.name) for entry in file.parent.iterdir())
        for item in contents.items:
            item.place = f"{file.parent.name}/{file.name}, {contents.place} {item.place}"
            if item.exhaustive and not are_all:  # it answers the classes of its own file, not those of the others
                named = {given.class_name for given in item.labels}
                rest = [ImportedLabel(name, ABSENT) for name, _ in contents.classes if name not in named]
                item.labels, item.exhaustive = [*item.labels, *rest], False
            is_bare = holds_images and not {"/", "\\"}.intersection(item.image)  # "a" for a.jpg
            if beside not in ("", ".") and (is_bare or (file.parent / item.image).is_file()):
                item.image = f"{beside}/{item.image}"
                if file.parent.name.lower() in SPLIT_FOLDER_NAMES and "split" not in item.attributes:
                    item.attributes = {**item.attributes, "split": file.parent.name}
            yield item
    # Some are known only after the last row.
    sentences[:], interpretations[:] = _join_sentences(each), _join_interpretations(files, each)

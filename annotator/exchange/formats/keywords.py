"""Keywords of photos: XMP and IPTC in image files, .xmp sidecars, and JSON of `exiftool -json`.

See https://exiftool.org and https://www.iptc.org/standards/photo-metadata. A keyword makes its class present, and all
other classes stay unanswered. The user chooses the keywords that are classes, except in our own sidecars, which hold
absent and unsure labels too.

Written: one sidecar per image, such as a.jpg.xmp. In it, `dc:subject` decides which labels are present, so that changes
by other programs count.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.photo_keywords import read_photo_keywords
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.xmp_packets import (
    HIERARCHY_SEPARATOR,
    MAX_PACKET_BYTES,
    OWN_NAMESPACE,
    KeywordPacket,
    format_packet,
    parse_packet,
    replace_non_xml_characters,
)
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.export_view import STATE_WORDS, Block, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.keyword_choice import ALL_KEYWORDS, KeywordChoice
from annotator.exchange.formats.shared.label_file_pairs import find_first_files, strip_suffix
from annotator.exchange.reading.reading_options import Interpretation, ReadingOptions
from annotator.humanize import format_count
from annotator.records import FILL_SOURCES, PRESENT, STATES
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.files import list_files, unescape_path
from annotator.store.pictures.picture_kinds import looks_like_image

SIDECAR_SUFFIX = ".xmp"
KEYWORD_LIST_FILE = "keywords.txt"
"""One class per line, which Lightroom and digiKam import as keywords. It is not read back."""
FILLED_PROPERTY = "filled"
EXIFTOOL_NAME_KEY = "SourceFile"
FLAT_KEYS, SLASH_KEY, PIPE_KEY = ("Subject", "Keywords"), "TagsList", "HierarchicalSubject"
_EXIFTOOL_MARKS = tuple(f'{key}"'.encode() for key in (*FLAT_KEYS, SLASH_KEY, PIPE_KEY))
_DECODER = msgspec.json.Decoder(list[dict[str, Any]])


def recognize(path: Path) -> str | None:
    if path.is_file():
        start = read_start(path)
        is_list = start[:1] == b"[" and f'"{EXIFTOOL_NAME_KEY}"'.encode() in start
        return "keywords of photos, from exiftool -json" if is_list and any(map(start.count, _EXIFTOOL_MARKS)) else None
    found = find_first_files(path, (SIDECAR_SUFFIX,)) if path.is_dir() else []
    is_own = any(OWN_NAMESPACE.encode() in read_start(file) for file in found)
    return "an .xmp file per image, of an export of this program" if is_own else None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images. options.class_columns are the keywords that are classes."""
    choice = KeywordChoice(options.class_columns)
    interpretations: list[Interpretation] = []
    if path.is_file():
        sentences: list[str] = []
        found = _read_exiftool(path, choice, problems)
        items = _add_findings(found, choice, problems, sentences, interpretations)
        return Contents((), items, place="record", sentences=sentences, interpretations=interpretations)
    reader = _FolderReader(path, choice)
    items = _add_findings(reader.read_items(), choice, problems, reader.sentences, interpretations)
    folder = path if reader.images else None
    return Contents((), items, folder=folder, place="file", sentences=reader.sentences, interpretations=interpretations)


def read_keyword_paths(path: Path) -> list[list[str]]:
    """Return the paths of the keywords of a source, such as ["Species", "fox"]. Raises AnnotatorError."""
    choice, problems = KeywordChoice([ALL_KEYWORDS]), Problems()
    items = _read_exiftool(path, choice, problems) if path.is_file() else _FolderReader(path, choice).read_items()
    for _ in items:
        pass
    if problems.count:
        raise problems.error(f"{path} cannot be read:")
    return choice.list_paths()


def _add_findings(
    items: Iterator[Item],
    choice: KeywordChoice,
    problems: Problems,
    sentences: list[str],
    interpretations: list[Interpretation],
) -> Iterator[Item]:
    """Yield the items, then complete the lists of the contents."""
    yield from items
    interpretations += choice.list_questions()
    sentences += choice.list_sentences()
    choice.report_problems(problems)


class _FolderReader:
    """A reader of photos and sidecars of a folder. Its sentences are complete after the last item."""

    def __init__(self, root: Path, choice: KeywordChoice):
        listing = list_files(root, leave_out=root)
        self._root, self._choice = root, choice
        self.images = dict.fromkeys(listing.list_images())
        self._stems: dict[str, list[str]] = defaultdict(list)
        for image in self.images:
            self._stems[_strip_ending(image)].append(image)
        self._sidecar_paths = [name for name in listing.paths if name.lower().endswith(SIDECAR_SUFFIX)]
        self._damaged: Counter[str] = Counter()
        self._ambiguous: list[str] = []
        self._different: list[str] = []
        self.sentences = ["A keyword is a present label. Classes that are not keywords of an image are unanswered."]

    def read_items(self) -> Iterator[Item]:
        sidecars, orphans = self._assign_sidecars()
        for image in self.images:
            packets = [self._parse_sidecar(name) for name in sidecars.get(image, ())]
            yield self._build_item(image, self._parse_photo(image), packets)
        for name in orphans:
            packet = self._parse_sidecar(name)
            yield self._build_item("", KeywordPacket(), [packet], _name_image(name, packet))
        self._add_sentences()

    def _assign_sidecars(self) -> tuple[Mapping[str, Sequence[str]], Sequence[str]]:
        """Return the sidecars of each image, and those without an image."""
        sidecars: dict[str, list[str]] = defaultdict(list)
        orphans = []
        for name in self._sidecar_paths:
            base = name[: -len(SIDECAR_SUFFIX)]
            images = [base] if base in self.images else self._stems.get(base, [])
            if len(images) > 1:
                ending = self._parse_sidecar(name).extension.lower()
                images = [image for image in images if ending and image.lower().endswith(f".{ending}")] or images
            if len(images) > 1:
                self._ambiguous.append(name)
            elif images:
                sidecars[images[0]].append(name)
            else:
                orphans.append(name)
        return sidecars, orphans

    def _parse_sidecar(self, name: str) -> KeywordPacket:
        try:
            with open_file(self._root / unescape_path(name)) as file:
                return parse_packet(file.read(MAX_PACKET_BYTES + 1))
        except OSError as error:
            self._damaged[f"{name}: {error.strerror or error}"] += 1
        except ValueError as error:
            self._damaged[f"{name}: {error}"] += 1
        return KeywordPacket()

    def _parse_photo(self, image: str) -> KeywordPacket:
        try:
            return read_photo_keywords(self._root / unescape_path(image))
        except ValueError as error:
            self._damaged[f"{image}: {error}"] += 1
            return KeywordPacket()

    def _build_item(self, file: str, photo: KeywordPacket, sidecars: Sequence[KeywordPacket], name: str = "") -> Item:
        if any(set(one.list_names()) != set(photo.list_names()) for one in sidecars if photo.list_names()):
            self._different.append(file)
        own = next((one for one in (*sidecars, photo) if one.own), None)
        labels = _read_own_labels(own) if own else []
        facts = own.own if own else {}
        joined = KeywordPacket(
            [*photo.flat, *(name for one in sidecars for name in one.flat)],
            [*photo.paths, *(path for one in sidecars for path in one.paths)],
        )
        known = {replace_non_xml_characters(given.class_name) for given in labels}
        labels += [ImportedLabel(class_, PRESENT) for class_ in self._choice.select_classes(joined, known)]
        split = _get_first(facts, "split")
        return Item(
            _get_first(facts, "image") or file or name,
            file or name,
            labels,
            file=file,
            sha256=_get_first(facts, "sha256"),
            attributes={"split": split} if split else {},
        )

    def _add_sentences(self) -> None:
        if self._damaged:
            self.sentences.append(
                f"{format_count(len(self._damaged), 'file')} not read, such as {next(iter(self._damaged))}."
            )
        if self._ambiguous:
            files = format_count(len(self._ambiguous), "sidecar")
            self.sentences.append(
                f"{files} not read, because several images have its name: {self._ambiguous[0]}. Name it as its image, "
                "such as a.jpg.xmp."
            )
        if self._different:
            images = format_count(len(self._different), "image")
            self.sentences.append(
                f"{images} with other keywords in the file than in its sidecar: both are read ({self._different[0]})."
            )


def _strip_ending(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return folder + slash + strip_suffix(name)


def _name_image(sidecar: str, packet: KeywordPacket) -> str:
    base = sidecar[: -len(SIDECAR_SUFFIX)]
    return f"{base}.{packet.extension}" if packet.extension and not looks_like_image(base) else base


def _get_first(facts: Mapping[str, Sequence[str]], name: str) -> str:
    return next(iter(facts.get(name, ())), "")


def _read_own_labels(packet: KeywordPacket) -> list[ImportedLabel]:
    """Return the labels of our own sidecar. A keyword that another program removed or added since counts."""
    filled = [text.split("\t", 2) for text in packet.own.get(FILLED_PROPERTY, ())]
    given = [(name, STATES[word], "") for word in STATE_WORDS[1:] for name in packet.own.get(word, ())]
    given += [(one[2], STATES[one[0]], one[1]) for one in filled if len(one) == 3 and one[0] in STATES]
    keywords = set(packet.list_names())
    written = {replace_non_xml_characters(name) for name, state, _ in given if state == PRESENT}
    labels = []
    for name, state, source in given:
        shown = replace_non_xml_characters(name)
        is_keyword = shown in keywords
        if state != PRESENT and is_keyword and shown not in written:
            labels.append(ImportedLabel(name, PRESENT))
        elif state != PRESENT or is_keyword:
            labels.append(ImportedLabel(name, state, source=source))
    return labels


def _read_exiftool(path: Path, choice: KeywordChoice, problems: Problems) -> Iterator[Item]:
    for piece in read_pieces(path, lambda key: not key):
        for index, record in piece.decode(_DECODER, problems):
            name = record.get(EXIFTOOL_NAME_KEY)
            if not isinstance(name, str) or not name:
                problems.add(f"record {index + 1}: it has no {EXIFTOOL_NAME_KEY}, which names the image")
                continue
            packet = KeywordPacket()
            for key, value in record.items():
                tag = key.rpartition(":")[2]  # with -G, a group stands before the tag
                for text in _list_texts(value, f"record {index + 1} ({name})", tag, problems):
                    if tag in FLAT_KEYS:
                        packet.flat.append(text)
                    else:
                        parts = text.split("/" if tag == SLASH_KEY else HIERARCHY_SEPARATOR)
                        packet.paths.append(tuple(part.strip() for part in parts if part.strip()) or (text,))
            labels = [ImportedLabel(class_, PRESENT) for class_ in choice.select_classes(packet)]
            yield Item(name.removeprefix("./"), index + 1, labels)


def _list_texts(value: Any, place: str, tag: str, problems: Problems) -> list[str]:
    """Return the keywords in a tag's value. exiftool writes a whole number without quotes."""
    if tag not in (*FLAT_KEYS, SLASH_KEY, PIPE_KEY) or value is None:
        return []
    texts = []
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) or type(one) is int:
            texts += [text] if (text := str(one).strip()) else []
        else:
            problems.add(f"{place}: {tag} has {one!r:.100}, which is not text. Put it in quotes in the file")
    return texts


def write(view: View, output: Output) -> None:
    """Write a sidecar per image, the same block in resized images, and a list of all classes."""
    names = [class_.name for class_ in view.classes]
    with output.open_text(KEYWORD_LIST_FILE) as file:
        file.writelines(" ".join(replace_non_xml_characters(name).split()) + "\n" for name in names)
    for block in view.blocks():
        for row, image in enumerate(block.images):
            facts: dict[str, Sequence[str]] = {"image": [image.name], "sha256": [image.sha256]}
            if block.splits[row]:
                facts["split"] = [block.splits[row]]
            present, own = _collect_labels(view, block, row, names)
            packet = format_packet(present, {**facts, **own})
            with output.open_text(f"{block.files[row]}{SIDECAR_SUFFIX}") as file:
                file.write(packet)
            if view.image_mode != "none":
                output.write_image(image, block.files[row], packet)


def _collect_labels(view: View, block: Block, row: int, names: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the present classes, and our own properties."""
    own: dict[str, list[str]] = defaultdict(list)
    present = []
    for column in block.states[row].nonzero()[0].tolist():
        word, source = STATE_WORDS[block.states[row, column]], view.sources[block.sources[row, column]]
        if STATES[word] == PRESENT:
            present.append(names[column])
        if source in FILL_SOURCES:
            own[FILLED_PROPERTY].append(f"{word}\t{source}\t{names[column]}")
        else:
            own[word].append(names[column])
    return present, own


KEYWORDS = Format(
    name="keywords",
    about="Keywords of photos in XMP, IPTC and .xmp files: Lightroom, digiKam, darktable, exiftool",
    recognize=recognize,
    read=read,
    write=write,
    lost=FormatLosses(unknown=False, unsure=False, absent=False, provenance=True),
)

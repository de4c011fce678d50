"""Wildlife Insights downloads: images.csv with one row per identification.

Format: https://www.wildlifeinsights.org. The class is the lowest known scientific name, or "human". Blanks
mean an empty image, uncertain rows unsure. Computer vision gives scores.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from annotator.errors import AnnotatorError
from annotator.exchange.files.csv_cells import unescape_formula
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_csv_rows
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.label_table import read_header
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.humanize import format_count
from annotator.records import PRESENT, UNSURE

IDENTIFYING_COLUMNS = frozenset({"image_id", "deployment_id", "is_blank", "common_name"})
"""Columns by which the file is recognised."""
SCIENTIFIC_NAME, COMMON_NAME = "scientific_name", "common_name"
TAXON_RANKS = ("family", "order", "class")
TRUE_WORDS = ("1", "1.0", "true", "yes", "t")
CERTAIN_WORDS = ("", "0", "0.0", "no", "none", "false", "null", "na", "certain")
MACHINE_NAMES = ("computer vision", "cv", "speciesnet", "machine", "wildlife insights ai")
HUMAN_NAMES = ("human", "humans", "homo species", "human-camera trapper", "homo sapiens")
NON_CLASS_NAMES = ("", "blank", "no cv result", "unknown", "unidentifiable", "null", "none", "misfire")
FACT_COLUMNS = ("deployment_id", "image_id", "timestamp")
LABEL_FACTS = {"number_of_objects": "count", "sex": "sex", "age": "age", "uncertainty": "uncertainty"}
MISSING_VALUES = ("", "na", "nan", "null", "none")


def recognize(path: Path) -> str | None:
    if not path.is_file() or path.suffix.lower() not in (".csv", ".tsv", ".txt"):
        return None
    is_known = IDENTIFYING_COLUMNS.issubset(read_header(path)[0])
    return "images.csv of Wildlife Insights: it has deployment_id, image_id and is_blank" if is_known else None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels in two passes, with some 150 bytes of memory per image."""
    column = (options.label_columns or (SCIENTIFIC_NAME,))[0]
    header = read_header(path)[0]
    if column not in (SCIENTIFIC_NAME, *header):
        raise AnnotatorError(f"{path} has no column {column!r} to name classes. There is: {', '.join(header)}.")
    other = COMMON_NAME if column == SCIENTIFIC_NAME else SCIENTIFIC_NAME
    decided = [Interpretation("label_columns", column, f"classes are called by `{column}`", True, (other,))]
    folder, why = _choose_folder_column(path, header)
    if options.folder_column is not None:
        folder = "" if options.folder_column == NONE_VALUE else options.folder_column
        if folder and folder not in header:
            raise AnnotatorError(f"{path} has no column {folder!r} with the folder. There is: {', '.join(header)}.")
    decided.append(Interpretation("folder_column", folder or NONE_VALUE, why, True, ("deployment_id", NONE_VALUE)))
    said = ["is_blank says that nothing is there; identifications by computer vision are scores."]
    return Contents([], _read_items(path, column, folder, problems, said), sentences=said, interpretations=decided)


def _read_rows(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    rows = read_csv_rows(path, problems, delimiter=read_header(path)[1])
    header = [name.strip().lower() for name in next(rows, (0, [""]))[1]]
    for line, row in rows:
        cells = ["" if cell.strip().lower() in MISSING_VALUES else cell.strip() for cell in row]
        yield line, dict(zip(header, cells, strict=True))


def _find_file_name(row: Mapping[str, str]) -> str:
    inside = unquote(urlsplit(row.get("location", "")).path)
    return unescape_formula(row.get("filename", "")) or inside.rpartition("/")[2]


def _choose_folder_column(path: Path, header: list[str]) -> tuple[str, str]:
    known: dict[str, str] = {}
    for _, row in _read_rows(path, Problems()):
        name, image = _find_file_name(row), row["image_id"]
        if known.setdefault(name, image) != image:
            why = f"{name!r} is the file of several images, so `deployment_id` is the folder before its name"
            return "deployment_id", why
    return "", "each file name is that of one image, so that no folder is needed to find it"


def _read_items(path: Path, column: str, folder: str, problems: Problems, said: list[str]) -> Iterator[Item]:
    blanks: dict[str, int] = {}
    shown: set[str] = set()
    unnamed = unscored = 0
    for line, row in _read_rows(path, problems):
        name = _find_file_name(row)
        if not name:
            problems.add(f"line {line}: neither filename nor location names a file")
            continue
        image = f"{row[folder]}/{name}" if folder and row[folder] else name
        class_name, is_machine = _find_class_name(row, column), _is_machine(row)
        item = Item(image, line, labels=[], scores={}, answered=False)
        facts = {fact: row.get(fact, "") for fact in FACT_COLUMNS}
        if row["is_blank"].lower() in TRUE_WORDS:
            if is_machine:
                unscored += 1
            else:
                blanks[image] = line
        elif not class_name:
            unnamed += 1
        elif is_machine:
            score = _parse_number(row.get("cv_confidence", ""))
            if score is None or not 0 <= score <= 1:
                unscored += 1
            else:
                item.scores = {class_name: score}
        else:
            state = PRESENT if row.get("uncertainty", "").lower() in CERTAIN_WORDS else UNSURE
            item.labels = [ImportedLabel(class_name, state, row.get("identified_by", ""))]
            item.answered = True
            shown.add(image)
            facts |= {f"{word} of {class_name}"[:200]: row.get(fact, "") for fact, word in LABEL_FACTS.items()}
        item.attributes = {fact: text[:2000] for fact, text in facts.items() if text}
        yield item
    both = 0
    for image, line in blanks.items():
        both += image in shown
        if image not in shown:
            yield Item(image, line, exhaustive=True)
    for count, words, what in (
        (unnamed, ("row", "rows"), "without a class: nobody could or did name what is there"),
        (unscored, ("identification", "identifications"), "by computer vision left out: blank, or no cv_confidence"),
        (both, ("image", "images"), "blank in one row and not in another: they do not count as complete"),
    ):
        if count:
            said.append(f"{format_count(count, *words)} {what}.")


def _find_class_name(row: Mapping[str, str], column: str) -> str:
    common = row["common_name"]
    scientific = " ".join(part for part in (row.get("genus", ""), row.get("species", "")) if part)
    if common.lower() in HUMAN_NAMES or scientific.lower() in HUMAN_NAMES:
        return "human"
    if common.lower() in NON_CLASS_NAMES and not scientific:
        return ""
    if column not in (SCIENTIFIC_NAME, COMMON_NAME):
        return row[column]
    ranks = (row.get(rank, "") for rank in TAXON_RANKS)
    known = scientific or next((name for name in ranks if name), "")
    return (known or common) if column == SCIENTIFIC_NAME else (common or known)


def _is_machine(row: Mapping[str, str]) -> bool:
    by, score = row.get("identified_by", "").lower(), _parse_number(row.get("cv_confidence", ""))
    return by in MACHINE_NAMES or (not by and score is not None and 0 < score < 1)


def _parse_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


WILDLIFE_INSIGHTS = Format(
    name="wildlife-insights",
    about="images.csv of a download of Wildlife Insights",
    ending=".csv",
    recognize=recognize,
    read=read,
)

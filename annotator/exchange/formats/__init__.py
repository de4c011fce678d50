"""One file per format that is read or written, one line a format in the table FORMATS.

format.py says what a format is, contents.py what is read, view.py what is written.
"""

from annotator.exchange.formats.coco import COCO
from annotator.exchange.formats.coco_results import COCO_RESULTS
from annotator.exchange.formats.csv_table import write_provenance, write_values
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.json_lines import write_lines
from annotator.exchange.formats.notes import write_notes
from annotator.exchange.formats.openimages import OPENIMAGES
from annotator.exchange.formats.table import File

EXPORTS = {
    "csv": (
        File("", "text/csv", write_values, "one row per image, one column per class"),
        File(".provenance.csv", "text/csv", write_provenance, "who or what gave each label, and when"),
        File(".notes.csv", "text/csv", write_notes, "flags and comments: who wrote what, and when"),
    ),
    "jsonl": (File("", "application/jsonl", write_lines, "one object per image, with provenance, flag and comments"),),
}
"""Format -> the files it consists of. The first one is written to the name that a person gives."""

FORMATS: dict[str, Format] = {format_.name: format_ for format_ in (COCO, COCO_RESULTS, OPENIMAGES)}
"""Name -> the format. Takes over from EXPORTS format by format."""

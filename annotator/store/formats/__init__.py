"""One file per format that is read or written. EXPORTS is the table of those that can be written."""

from annotator.store.formats.csv_table import write_csv
from annotator.store.formats.json_lines import write_jsonl

EXPORTS = {"csv": write_csv, "jsonl": write_jsonl}

"""Class maps: tables (CSV or TSV) from source names to project classes.

An empty class omits the name. A header `source,class` is skipped.
"""

from pathlib import Path

from annotator.errors import combine_problems
from annotator.exchange.files.csv_cells import unescape_formula
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_csv_rows
from annotator.exchange.formats.shared.label_table import read_header


def read_class_map(path: Path) -> dict[str, str]:
    """Return the class by source name ("" omits it). Raises AnnotatorError."""
    problems = Problems()
    known: dict[str, tuple[int, str]] = {}
    for line, row in read_csv_rows(path, problems, columns=2, delimiter=read_header(path)[1]):
        name, class_ = (unescape_formula(cell.strip()) for cell in row)
        if line == 1 and (name.lower(), class_.lower()) == ("source", "class"):
            continue
        earlier = known.setdefault(name, (line, class_))
        if earlier[1] != class_:
            problems.add(f"line {line}: {name!r} is {class_!r}, but {earlier[1]!r} in line {earlier[0]}")
    if not known and not problems.count:
        raise combine_problems(f"The class map {path} is empty.", ["write one `source,class` a line"])
    if problems.count:
        raise problems.error(f"The class map {path} cannot be used:")
    return {name: class_ for name, (_, class_) in known.items()}

"""The result of a comparison in words: a table for a terminal, the same in Markdown."""

from collections.abc import Iterable

from annotator.benchmark.methods.task import FIRST

# key, heading, digits; the figures with a spread are written "mean +- deviation".
COLUMNS = (
    ("method", "method", None),
    ("share", "share", None),
    ("test_map", "test mAP", 1),
    ("hidden_ap", "hidden AP", 1),
    ("hidden_map", "hidden mAP", 1),
    (f"precision_{FIRST}", f"of first {FIRST}", 1),
    ("ece", "ECE", 1),
    ("seconds", "s / epoch", 3),
)
NOTE = (
    "Figures but the last are percent, mean and standard deviation over seeds. test mAP: mean over classes of the "
    "average precision on the test images. hidden AP: average precision of the hidden positives of the training "
    "images, all unanswered cells in one ranking; hidden mAP: the same class by class, and then the mean. "
    f"of first {FIRST}: how many of the first {FIRST} suggestions are true. ECE: expected calibration error on "
    "the test images."
)


def text(result: dict) -> str:
    """The table as plain text, best hidden AP of each share first."""
    cells = [[heading for _, heading, _ in _columns(result)], *_cells(result, result["rows"])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        name, *rest = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join([f"{name.strip():<{widths[0]}}", *rest]))
    return "\n".join([*_about(result), "", *(line.rstrip() for line in lines), ""])


def markdown(result: dict) -> str:
    """The table in Markdown, with the exact command and what it was measured on."""
    setting = result["setting"]
    lines = [f"`{setting['command']}`", "", *_about(result), "", NOTE, ""]
    for share in dict.fromkeys(row["share"] for row in result["rows"]):
        chance = 100 * setting["chance"][f"{share:g}"]
        lines += [f"**Labels on {100 * share:g} % of the training images** (hidden AP by chance: {chance:.1f})", ""]
        headings = [heading for key, heading, _ in _columns(result) if key != "share"]
        lines += ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
        for cells in _cells(result, [row for row in result["rows"] if row["share"] == share]):
            lines.append("| " + " | ".join([f"`{cells[0]}`", *cells[2:]]) + " |")
        lines.append("")
    return "\n".join(lines)


def _about(result: dict) -> list[str]:
    """Two lines that say on what, and how."""
    setting = result["setting"]
    trials = (
        f"{setting['trials']} trials of tuning on validation mAP" if setting["trials"] > 1 else "settings as they come"
    )
    lines = [
        f"{setting['data']}: {setting['images']:,} images ({setting['train']:,} train, "
        f"{setting['val']:,} validation, {setting['test']:,} test), {setting['classes']} classes, "
        f"{setting['labels_an_image']:.2f} labels an image.",
        f"Regime {setting['regime']}, {setting['backbone']}, {setting['seeds']} seeds, {trials}, "
        f"on {setting['device']}.",
    ]
    return lines + [f"Note: {note}." for note in setting["notes"]]


def _columns(result: dict) -> list[tuple[str, str, int | None]]:
    """COLUMNS without those that were not measured: where there are no test images."""
    return [column for column in COLUMNS if column[0] in result["rows"][0]]


def _cells(result: dict, rows: Iterable[dict]) -> list[list[str]]:
    """The rows as words, the best hidden AP of each share first."""
    ordered = sorted(rows, key=lambda row: (row["share"], -row["hidden_ap"]))
    return [[_cell(row, key, digits) for key, _, digits in _columns(result)] for row in ordered]


def _cell(row: dict, key: str, digits: int | None) -> str:
    if digits is None:
        return f"{row[key]:g}" if isinstance(row[key], float) else str(row[key])
    if key == "seconds":
        return f"{row[key]:.{digits}f}"
    spread = row.get(f"{key}_std")
    return f"{100 * row[key]:.{digits}f}" + (f" ± {100 * spread:.{digits}f}" if spread is not None else "")

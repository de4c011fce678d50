"""The result of a comparison in words: a table for a terminal, the same in Markdown."""

from collections.abc import Callable, Collection, Iterable

from annotator.benchmark.first_named_class import RANDOM_NAMING
from annotator.benchmark.methods import measures
from annotator.benchmark.methods.supervision import SINGLE_POSITIVE, Supervision
from annotator.benchmark.methods.task import HIDDEN_FIGURES, SUGGESTIONS_PER_SITTING
from spmll.single_positive_sampling import ALL_LABELS

# key, heading, digits; the figures with a spread are written "mean +- deviation".
TABLE_COLUMNS = (
    ("method", "method", None),
    ("share", "share", None),
    ("clicks", "clicks", None),
    ("test_map", "test mAP", 1),
    ("hidden_ap", "hidden AP", 1),
    ("hidden_map", "hidden mAP", 1),
    (f"precision_{SUGGESTIONS_PER_SITTING}", f"of first {SUGGESTIONS_PER_SITTING}", 1),
    ("ece", "ECE", 1),
    ("seconds", "s / epoch", 3),
)
METHODS_NOTE = (
    "Figures but the last are percent, mean and standard deviation over seeds. test mAP: mean over classes of the "
    "average precision on the test images. hidden AP: average precision of the hidden positives of the training "
    "images, all unanswered cells in one ranking; hidden mAP: the same class by class, and then the mean. of first "
    f"{SUGGESTIONS_PER_SITTING}: how many of the first {SUGGESTIONS_PER_SITTING} suggestions are true. ECE: expected "
    "calibration error on the test images."
)


def format_text(result: dict) -> str:
    """Return the table as plain text, the best hidden AP of each share first."""
    cells = [[heading for _, heading, _ in _list_columns(result)], *_format_rows(result, result["rows"])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        name, *rest = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join([f"{name.strip():<{widths[0]}}", *rest]))
    return "\n".join(
        [*_make_about_lines(result), "", *(line.rstrip() for line in lines), *_format_clicks_tables(result, str), ""]
    )


def format_markdown(result: dict) -> str:
    """Return the table in Markdown, with the exact command and the measured set."""
    setting = result["setting"]
    lines = [
        f"`{setting['command']}`",
        "",
        *_make_about_lines(result),
        "",
        " ".join([METHODS_NOTE, *measures.list_notes(result["setting"]["measures"])]),
        "",
    ]
    left_out = ("share", "clicks")
    headings = [heading for key, heading, _ in _list_columns(result) if key not in left_out]
    for share, clicks in dict.fromkeys((row["share"], row["clicks"]) for row in result["rows"]):
        chance = 100 * setting["chance"][f"{share:g}"]
        how = "" if clicks == RANDOM_NAMING.label else f", {clicks} clicks"
        lines += [
            f"**Labels on {100 * share:g} % of the training images{how}** (hidden AP by chance: {chance:.1f})",
            "",
        ]
        lines += _format_table_head(headings)
        rows = [row for row in result["rows"] if (row["share"], row["clicks"]) == (share, clicks)]
        for cells in _format_rows(result, rows, left_out):
            lines.append(_format_line([f"`{cells[0]}`", *cells[1:]]))
        lines.append("")
    return "\n".join([*lines, *_format_clicks_tables(result, "`{}`".format)])


def _format_table_head(headings: list[str]) -> list[str]:
    return [_format_line(headings), "|" + "---|" * len(headings)]


def _format_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _format_clicks_tables(result: dict, code: Callable[[str], str]) -> list[str]:
    """Return one table for each share and figure: each method by way of clicking; [] if all clicks are random.

    Args:
        result: What `measure` returned.
        code: Formats the name of a method.
    """
    ways = list(result["setting"]["named"])
    if len(ways) < 2:
        return []
    lines = []
    for share in dict.fromkeys(row["share"] for row in result["rows"]):
        for key in HIDDEN_FIGURES:
            heading = next(heading for name, heading, _ in TABLE_COLUMNS if name == key)
            lines += [f"{heading} by first clicks, {100 * share:g} % labeled (difference from random clicks)", ""]
            lines += _format_table_head(["method", *ways])
            rows = {(row["method"], row["clicks"]): row for row in result["rows"] if row["share"] == share}
            names = dict.fromkeys(name for name, _ in rows)
            for name in sorted(names, key=lambda name: -sum(rows[name, way][key] for way in ways)):
                lines.append(_format_line([code(name), *(_format_clicks_cell(rows[name, way], key) for way in ways)]))
            if len(names) > 1:
                lines.append(
                    _format_line(["first, and its lead", *(_format_lead(rows, names, way, key, code) for way in ways)])
                )
            lines.append("")
    return lines


def _format_clicks_cell(row: dict, key: str) -> str:
    more = row.get(f"{key}_over_random")
    return f"{100 * row[key]:.1f}" + ("" if more is None else f" ({100 * more:+.1f})")


def _format_lead(rows: dict, names: Iterable[str], way: str, key: str, code: Callable[[str], str]) -> str:
    first, second = sorted(names, key=lambda name: -rows[name, way][key])[:2]
    return f"{code(first)} +{100 * (rows[first, way][key] - rows[second, way][key]):.1f}"


def _make_about_lines(result: dict) -> list[str]:
    """Return lines on the data, the settings, the ways of clicking and the notes."""
    setting = result["setting"]
    lines = [
        f"{setting['data']}: {setting['images']:,} images ({setting['train']:,} train, "
        f"{setting['val']:,} validation, {setting['test']:,} test), {setting['classes']} classes, "
        f"{setting['labels_an_image']:.2f} labels an image.",
        f"Regime {setting['regime']}, {setting['backbone']}, {_format_precision(setting)}{setting['seeds']} seeds, "
        f"{_describe_tuning(setting)}, on {setting['device']}.",
    ]
    told = Supervision(*(setting[name] for name in ("labels", "positives", "negatives", "validate")))
    if told != SINGLE_POSITIVE:
        lines.append(_describe_supervision(told))
    if setting["changed"]:
        lines.append(f"Changed constants: {', '.join(setting['changed'])}.")
    if len(setting["named"]) > 1:
        lines += [
            f"First clicks {way}: a class is named on {100 * low:.0f} to {100 * high:.0f} % of the labeled images that "
            "show it."
            for way, (low, high) in setting["named"].items()
        ]
    return lines + [f"Note: {note}." for note in setting["notes"]]


def _describe_tuning(setting: dict) -> str:
    """Return how the settings of a training were chosen."""
    if setting["protocol"] == "cole":
        tried = len(setting["searched"]["lr"]) * len(setting["searched"]["batches"])
        return f"protocol of Cole et al. at {setting['size']} pixels, the best of {tried} settings on validation mAP"
    return (
        f"{setting['trials']} trials of tuning on validation mAP" if setting["trials"] > 1 else "settings as they come"
    )


def _format_precision(setting: dict) -> str:
    """Return the precision of whole networks and a comma; "" for linear heads."""
    if setting["regime"] != "finetune":
        return ""
    return f"{setting['precision'] or 'precision of each paper'}, "


def _describe_supervision(supervision: Supervision) -> str:
    """Return a sentence on labels that are not those of the papers."""
    counts = ("all" if count == ALL_LABELS else str(count) for count in (supervision.positives, supervision.negatives))
    known = "all labels" if supervision.labels == "full" else "{} positives and {} negatives".format(*counts)
    return (
        f"Known of a labeled training image: {known}. Validation labels that choose the epoch: {supervision.validate}."
    )


def _list_columns(result: dict) -> list[tuple[str, str, int | None]]:
    """Return TABLE_COLUMNS without those that were not measured (no test images), or are the same in all rows."""
    same = () if len(result["setting"]["named"]) > 1 else ("clicks",)
    asked = [(name, name, 1) for name in result["setting"]["measures"]]
    columns, measured = [*TABLE_COLUMNS[:-1], *asked, TABLE_COLUMNS[-1]], {key for row in result["rows"] for key in row}
    return [column for column in columns if column[0] in measured and column[0] not in same]


def _format_rows(result: dict, rows: Iterable[dict], left_out: Collection[str] = ()) -> list[list[str]]:
    """Return the rows as strings, the best hidden AP of each share and way of clicking first."""
    ways = list(result["setting"]["named"])
    best = "hidden_ap" if "hidden_ap" in result["rows"][0] else "test_map"
    ordered = sorted(rows, key=lambda row: (row["share"], ways.index(row["clicks"]), -row.get(best, 0)))
    columns = [(key, digits) for key, _, digits in _list_columns(result) if key not in left_out]
    return [[_format_cell(row, key, digits) for key, digits in columns] for row in ordered]


def _format_cell(row: dict, key: str, digits: int | None) -> str:
    if key not in row:
        return "-"
    if digits is None:
        return f"{row[key]:g}" if isinstance(row[key], float) else str(row[key])
    if key == "seconds":
        return f"{row[key]:.{digits}f}"
    spread = row.get(f"{key}_std")
    return f"{100 * row[key]:.{digits}f}" + (f" ± {100 * spread:.{digits}f}" if spread is not None else "")

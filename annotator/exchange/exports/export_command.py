"""The command line that makes the same export as the Export page."""

import csv
import io
import shlex
from pathlib import Path

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.thresholds import Limits
from annotator.exchange.formats.format import Format


def format_export_command(
    project: Path, target: Path, format_: Format, choices: Choices, *, tag: str = "", lossy: bool = False
) -> str:
    """Return the `annotator export ...` command, quoted for a shell, with only the options that are not defaults."""
    usual = Choices()
    words = ["annotator", "export", str(project), str(target), f"--format={format_.name}"]
    if choices.unknown != usual.unknown:
        words.append(f"--unknown={choices.unknown}")
    if choices.unknown == "model":
        words += _limit_options(choices.limits)
    for name, option in (
        ("only_complete", "--only-complete"),
        ("only_labeled", "--only-labeled"),
        ("set_aside", "--with-set-aside"),
    ):
        words += [option] if getattr(choices, name) else []
    for name, option in (
        ("classes", "--class"),
        ("states", "--state"),
        ("annotators", "--annotator"),
        ("sources", "--source"),
    ):
        words += [f"{option}={value}" for value in getattr(choices, name)]
    if choices.event_labels:
        words.append("--event-labels")
    if choices.differing != usual.differing:
        words.append(f"--differing={choices.differing}")
    if not choices.auto_accepted:
        words.append("--no-accepted")
    for name in ("accepted_precision", "accepted_confidence"):
        if value := getattr(choices, name):
            words.append(f"--{name.replace('_', '-')}={value:g}")
    if choices.splits:
        words.append(f"--splits={choices.splits}")
        words += [f"--split-by={choices.split_by}"] if choices.split_by else []
        words += [f"--seed={choices.seed}"] if choices.seed else []
    words += _file_options(format_, choices)
    for name in ("license", "cite", "deployments"):
        if value := getattr(choices, name):
            words.append(f"--{name}={value}")
    words += [f"--tag={tag}"] if tag else []
    words += ["--lossy"] if lossy else []
    return shlex.join(words)


def _limit_options(limits: Limits) -> list[str]:
    words = [f"--expected-error={limits.expected_error:g}"] if limits.expected_error != Limits().expected_error else []
    for name, value in (("present-from", limits.present_from), ("absent-to", limits.absent_to)):
        words += [f"--{name}={value:g}"] if value is not None else []
    return words


def _file_options(format_: Format, choices: Choices) -> list[str]:
    words: list[str] = []
    if choices.images and choices.images != format_.images:
        words.append(f"--images={choices.images}")
    if choices.images == "resize" and choices.pixels != Choices().pixels:
        words.append(f"--pixels={choices.pixels}")
    columns = choices.columns
    words += ["--long"] if columns.long else []
    words += [f"--columns={_format_columns(columns.chosen)}"] if columns.chosen else []
    for is_chosen, option in (
        (columns.seconds, "--seconds"),
        (choices.pseudonyms, "--pseudonyms"),
        (choices.raw, "--raw"),
    ):
        words += [option] if is_chosen else []
    return words


def _format_columns(chosen: tuple[tuple[str, str], ...]) -> str:
    """Return the chosen columns as text that `choices.columns_of` reads back."""
    text = io.StringIO()
    parts = []
    for name, written in chosen:
        escaped = name.replace("\\", "\\\\").replace("=", "\\=")
        parts.append(escaped if name == written and escaped == name else f"{escaped}={written}")
    csv.writer(text, lineterminator="").writerow(parts)
    return text.getvalue()

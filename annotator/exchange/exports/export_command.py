"""The shell command that repeats an export of the Export page."""

import shlex
from pathlib import Path

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.option_types import ExportOption
from annotator.exchange.formats.format import Format


def format_export_command(
    project: Path, target: Path, format_: Format, choices: Choices, *, tag: str = "", lossy: bool = False
) -> str:
    """Format the `annotator export` command, quoted for a shell, without options at their defaults."""
    words = ["annotator", "export", str(project), str(target), f"--format={format_.name}"]
    for option in choices.list_chosen():
        if option.is_used(choices) and (option.field != "images" or choices.images != format_.images):
            words += _format_option(option, choices)
    words += [f"--tag={tag}"] if tag else []
    words += ["--lossy"] if lossy else []
    return shlex.join(words)


def _format_option(option: ExportOption, choices: Choices) -> list[str]:
    value = choices.get_value(option.field)
    if isinstance(value, bool):
        return [option.flag]
    if isinstance(value, float):
        return [f"{option.flag}={value:g}"]
    if isinstance(value, tuple) and not option.parse:
        return [f"{option.flag}={word}" for word in value]
    return [f"{option.flag}={option.format(value)}"]

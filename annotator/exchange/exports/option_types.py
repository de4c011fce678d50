"""The type of a row in OPTIONS (export_options.py): an export option, with its Export page widget."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the formats would delay every command
    from annotator.exchange.formats.format import Format


class Effect(Enum):
    """The effects that an option can have besides those on exported files."""

    COUNTS = "counts and data card"
    CARD = "data card"
    FILES = "nothing else"


class PageSection(StrEnum):
    """The parts of the Export page, by title."""

    UNKNOWN = "Unanswered image-class pairs"
    IMAGES = "Images and answers"
    ANSWERS = "Classes, people, certificate"
    SPLITS = "Splits for training"
    FILES = "Image files"
    TABLE = "Columns, times, names of people"
    CAMERAS = "Camera stations"
    TERMS = "License and how to cite"


class WidgetKind(Enum):
    """The kinds of widgets on the Export page. PART is drawn by a function for several options."""

    CHECKBOX, MULTISELECT, SELECT, PERCENT, TEXT, PATH, PART = range(7)


@dataclass(frozen=True)
class PageWidget:
    """The widget of an option on the Export page."""

    kind: WidgetKind
    key: str
    # {count} is replaced by the number of `shown_for`, {pairs} by that number of labels
    label: str
    section: PageSection
    # tooltip, "" for none
    help: str = ""
    # name in PROJECT_COUNTS (ui/pages/export/choices_section.py). Shown if its count is not 0. "" always
    shown_for: str = ""


def _is_always_used(values: Any) -> bool:
    return True


@dataclass(frozen=True)
class ExportOption:
    """One option of an export, as flag of `annotator export` and widget of the Export page."""

    # field of OptionValues, or of a record in it: "limits.expected_error"
    field: str
    # flag, help, type, metavar: as on the command line
    flag: str
    help: str
    # None for an abbreviation of other options
    widget: PageWidget | None = None
    type: Any = bool
    metavar: str = ""
    # the flag sets False
    is_inverted: bool = False
    # parse, format: functions from the text on the command line to the value, and back
    parse: Callable[[Any], Any] | None = None
    format: Callable[[Any], str] = "{}".format
    # returns possible values and their titles
    list_words: Callable[[], Mapping[str, str]] | None = None
    low: float | None = None
    high: float | None = None
    effect: Effect = Effect.COUNTS
    # the only formats that accept it, by View.options. () means all
    formats: tuple[str, ...] = ()
    excluded_formats: tuple[str, ...] = ()
    needs_folder: bool = False
    # value that other formats accept, too
    void: str = ""
    # error for other formats, with {flag}, {value} and {format}
    refusal: str = "{flag} belongs to other formats than {format}. Leave it out."
    # function of OptionValues: whether the option has an effect
    is_used: Callable[[Any], bool] = _is_always_used
    # fields that it sets together, without a field of its own
    abbreviates: tuple[str, ...] = ()

    @property
    def parameter(self) -> str:
        """Return the name of the option's parameter in the Python function of the command."""
        return self.field.rpartition(".")[2]

    def parse_argument(self, given: Any) -> Any:
        """Return the value of the field for an argument of the command."""
        if self.parse:
            return self.parse(given)
        if self.is_inverted:
            return not given
        return tuple(given or ()) if self.type == list[str] | None else given

    def format_argument(self, value: Any) -> Any:
        """Return the argument of the command for a value of the field."""
        if self.is_inverted:
            return not value
        if self.parse:
            return self.format(value) or None if self.type == Path | None else self.format(value)
        return list(value) or None if isinstance(value, tuple) else value

    def suits_format(self, format_: "Format") -> bool:
        if self.needs_folder and format_.ending:
            return False
        return format_.name not in self.excluded_formats and (not self.formats or format_.name in self.formats)

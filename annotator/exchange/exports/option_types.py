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
    """The widget of an option on the Export page.

    Attributes:
        label: {count} is replaced by the number of `shown_for`, {pairs} by that number of labels.
        help: Tooltip, "" for none.
        shown_for: Name in PROJECT_COUNTS (ui/pages/export/choices_section.py). Shown if its count is not 0. ""
            always.
    """

    kind: WidgetKind
    key: str
    label: str
    section: PageSection
    help: str = ""
    shown_for: str = ""


def _is_always_used(values: Any) -> bool:
    return True


@dataclass(frozen=True)
class ExportOption:
    """One option of an export, as flag of `annotator export` and widget of the Export page.

    Attributes:
        field: Field of OptionValues, or of a record in it: "limits.expected_error".
        flag, help, type, metavar: As on the command line.
        widget: None for an abbreviation of other options.
        is_inverted: The flag sets False.
        parse, format: Functions from the text on the command line to the value, and back.
        list_words: Returns possible values and their titles.
        formats: The only formats that accept it, by View.options. () means all.
        void: Value that other formats accept, too.
        refusal: Error for other formats, with {flag}, {value} and {format}.
        is_used: Function of OptionValues: whether the option has an effect.
        abbreviates: Fields that it sets together, without a field of its own.
    """

    field: str
    flag: str
    help: str
    widget: PageWidget | None = None
    type: Any = bool
    metavar: str = ""
    is_inverted: bool = False
    parse: Callable[[Any], Any] | None = None
    format: Callable[[Any], str] = "{}".format
    list_words: Callable[[], Mapping[str, str]] | None = None
    low: float | None = None
    high: float | None = None
    effect: Effect = Effect.COUNTS
    formats: tuple[str, ...] = ()
    excluded_formats: tuple[str, ...] = ()
    needs_folder: bool = False
    void: str = ""
    refusal: str = "{flag} belongs to other formats than {format}. Leave it out."
    is_used: Callable[[Any], bool] = _is_always_used
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

"""Export options, named equally in the command line, pages and Python.

All problems are reported together before anything is read or written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.exports.export_options import OPTIONS, Limits, OptionValues
from annotator.exchange.exports.option_types import Effect, ExportOption
from annotator.exchange.formats.format import Format
from annotator.exchange.table_columns import TableColumns, parse_columns

__all__ = ["Choices", "parse_columns"]

EXISTING_SPLITS = "existing"
SPLIT_BY_SIMILARITY = "similar"


@dataclass(frozen=True)
class Choices(OptionValues):
    """The options chosen for one export, with the fields of OptionValues."""

    @property
    def takes_accepted(self) -> bool:
        """Return whether auto-accepted cells are exported."""
        return self.auto_accepted and not (self.annotators or self.sources)

    def problems(self) -> list[str]:
        """Return the problems that do not depend on project and format, in sentences."""
        sentences = self.limits.problems()
        for option in OPTIONS:
            sentences += [] if option.abbreviates else _find_value_problems(option, self.get_value(option.field))
        try:
            parse_split_shares(self.splits)
        except AnnotatorError as error:
            sentences.append(str(error))
        if self.split_by and not self.splits:
            sentences.append("--split-by needs --splits.")
        if self.split_by and uses_existing_splits(self.splits):
            sentences.append("--split-by cannot be used with splits that exist already.")
        return sentences

    def problems_of_format(self, format_: Format) -> list[str]:
        """Return the problems that the options have with this format, in sentences."""
        return [
            option.refusal.format(flag=option.flag, value=self.get_value(option.field), format=format_.name)
            for option in self.list_chosen()
            if not option.suits_format(format_) and self.get_value(option.field) != option.void
        ]

    def problems_of_project(self, classes: Iterable[str], annotators: Iterable[str], names: Sequence[str]) -> list[str]:
        """Return the problems that the options have with one project, in sentences.

        Args:
            classes: Class names.
            annotators: Names of annotators with decisions.
            names: Field names.

        Returns:
            One sentence per problem.
        """
        sentences = _find_unknown_words("--class", self.classes, classes) + _find_unknown_words(
            "--annotator", self.annotators, annotators
        )
        if len(set(self.classes)) < len(self.classes):
            sentences.append("--class names a class twice.")
        attribute = find_split_attribute(self.splits)
        if attribute and attribute not in names:
            sentences.append(f"No image has the attribute {attribute!r} to take splits from. {_list_attributes(names)}")
        if self.split_by not in ("", "folder", SPLIT_BY_SIMILARITY, *names):
            sentences.append(f"--split-by {self.split_by!r}: no image has such an attribute. {_list_attributes(names)}")
        return sentences

    def list_chosen(self) -> list[ExportOption]:
        """Return the options whose values differ from the defaults."""
        usual = OptionValues()
        return [
            option
            for option in OPTIONS
            if not option.abbreviates and self.get_value(option.field) != usual.get_value(option.field)
        ]

    def keep_effects(self, *effects: Effect) -> "Choices":
        """Return the choices with only options of these effects, and all others at their defaults."""
        return build_choices(
            {option.field: self.get_value(option.field) for option in self.list_chosen() if option.effect in effects}
        )

    def list_format_values(self) -> dict[str, Any]:
        """Return the values by field of the options that only some formats accept, for View.options."""
        return {option.field: self.get_value(option.field) for option in OPTIONS if option.formats}

    def as_json(self) -> dict[str, Any]:
        """Return the choices that differ from the defaults."""
        chosen, usual = asdict(self), asdict(OptionValues())
        return {name: value for name, value in chosen.items() if value not in (usual[name], "none")}

    @classmethod
    def from_json(cls, chosen: dict[str, Any]) -> "Choices":
        """Return the choices that `as_json` described.

        Args:
            chosen: Result of `as_json`. Lists count as tuples.

        Returns:
            Equal choices.
        """
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()
        }
        if "limits" in values:
            values["limits"] = Limits(**values["limits"])
        if "columns" in values:
            columns = values["columns"]
            pairs = tuple((name, written) for name, written in columns["chosen"])
            values["columns"] = TableColumns(columns["long"], pairs, columns["seconds"])
        return cls(**values)


def build_choices(values: Mapping[str, Any]) -> Choices:
    """Return choices from values by option field. Missing fields get their defaults."""
    records: dict[str, dict[str, Any]] = {"limits": {}, "columns": {}}
    plain: dict[str, Any] = {}
    for field, value in values.items():
        record, _, inner = field.partition(".")
        if inner:
            records[record][inner] = value
        else:
            plain[field] = value
    return Choices(**plain, limits=Limits(**records["limits"]), columns=TableColumns(**records["columns"]))


def uses_existing_splits(splits: str) -> bool:
    """Return whether `splits` selects splits that are stored in a field."""
    return splits.partition(":")[0] == EXISTING_SPLITS


def find_split_attribute(splits: str) -> str:
    """Return the name of the field with existing splits, or ""."""
    word, _, name = splits.partition(":")
    return (name or "split") if word == EXISTING_SPLITS else ""


def parse_split_shares(splits: str) -> dict[str, float]:
    """Return the share of each new split.

    Args:
        splits: `Choices.splits`.

    Returns:
        Share by name, empty without new splits.

    Raises:
        AnnotatorError: Invalid text, or a sum other than 1.
    """
    if not splits or uses_existing_splits(splits):
        return {}
    result: dict[str, float] = {}
    for part in splits.split(","):
        name, _, number = (word.strip() for word in part.partition("="))
        try:
            share = float(number)
        except ValueError:
            share = 0.0
        if not name or not 0 < share <= 1 or name in result or not _is_folder_name(name):
            raise AnnotatorError(
                f"--splits {splits!r} cannot be read at {part.strip()!r}: write each name once with its share, such as "
                "train=0.8,val=0.1,test=0.1, or existing for splits that the images have."
            )
        result[name] = share
    if abs(sum(result.values()) - 1) > 1e-6:
        raise AnnotatorError(f"The shares of --splits {splits!r} sum to {sum(result.values()):g}; they must sum to 1.")
    return result


def _is_folder_name(name: str) -> bool:
    return name.replace("-", "").replace("_", "").isalnum() and len(name) <= 50


def _find_value_problems(option: ExportOption, value: Any) -> list[str]:
    if option.list_words and isinstance(value, tuple):
        return _find_unknown_words(option.flag, value, option.list_words())
    if (
        option.list_words
        and value not in (words := option.list_words())
        and value != OptionValues().get_value(option.field)
    ):
        return [f"{option.flag} cannot be {value!r}. {did_you_mean(value, words)}"]
    if option.low is not None and option.high is not None and not option.low <= value <= option.high:
        return [f"{option.flag} {value:g} must lie between {option.low:g} and {option.high:g}."]
    return []


def _find_unknown_words(option: str, words: Sequence[str], known: Iterable[str]) -> list[str]:
    known = list(known)
    return [f"{option} {word!r} is not there. {did_you_mean(word, known)}" for word in words if word not in known]


def _list_attributes(names: Sequence[str]) -> str:
    return f"There is: {', '.join(names)}." if names else "Images have no attributes yet."

"""Which names of classes may be lists of names."""

import pytest

from annotator.errors import AnnotatorError
from annotator.exchange.formats.shared.class_list import parse_class_list, resolve_class_list
from annotator.store.classes.name_lists import KEEP, SPLIT, find_lists, resolve_lists, split_name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("fox", ["fox"]),
        ("fox, deer", ["fox", "deer"]),
        ("fox,deer;owl , fox", ["fox", "deer", "owl"]),
        ("Fox, red", ["Fox", "red"]),  # nobody but the person knows
        ("lens 1,4", ["lens 1,4"]),
        ("1, 2", ["1", "2"]),
        ("狐、鹿，梟", ["狐", "鹿", "梟"]),
        ("fox,", ["fox,"]),
        ("fox, fox", ["fox"]),
    ],
)
def test_split_name_separates_class_names_at_commas_and_semicolons(name, parts):
    assert split_name(name) == parts


def test_class_names_with_commas_count_as_lists_unless_described_or_existing():
    pairs = [("a, b", ""), ("c, d", "described"), ("e, f", ""), ("g", "")]
    assert find_lists([("fox, fox", "")], set()) == ["fox, fox"]
    assert find_lists(pairs, {"e, f"}) == ["a, b"]
    assert resolve_lists(pairs, {"e, f"}, "list.txt", KEEP) == pairs
    assert resolve_lists(pairs, {"e, f"}, "list.txt", SPLIT) == [("a", ""), ("b", ""), *pairs[1:]]
    assert resolve_lists(pairs[1:], {"e, f"}, "list.txt", None) == pairs[1:]
    with pytest.raises(AnnotatorError, match=r"'a, b' in list\.txt may be 2 classes or one"):
        resolve_lists(pairs, {"e, f"}, "list.txt", None)


def test_long_line_of_names_is_checked_name_by_name_once_it_is_split():
    names = [f"class number {number}" for number in range(30)]
    line = ", ".join(names)
    assert resolve_class_list(parse_class_list(line), set(), "the list", SPLIT) == [(name, "") for name in names]
    with pytest.raises(AnnotatorError, match="may be 30 classes or one"):
        resolve_class_list(parse_class_list(line), set(), "the list", None)
    for text in (f"fox, {'x' * 201}", f"{line}\twith a description"):
        with pytest.raises(AnnotatorError, match="at most 200 are allowed"):
            parse_class_list(text)
    with pytest.raises(AnnotatorError, match="at most 200 are allowed"):
        resolve_class_list(parse_class_list(line), set(), "the list", KEEP)

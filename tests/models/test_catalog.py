"""The methods as they are listed without torch are the methods as they are."""

import ast

import pytest

from spmll import catalog
from spmll.methods import DEFAULT_METHOD, METHODS, get_default_parameters
from spmll.methods.__main__ import TABLE_FIELDS, format_table
from spmll.methods.published.loss_only import AN


def test_method_catalog_matches_the_method_classes():
    assert catalog.TABLE_PATH.read_text(encoding="utf-8") == format_table(), "write it anew: python -m spmll.methods"
    assert list(catalog.load_methods()) == list(METHODS)
    assert catalog.get_default_method_name() == DEFAULT_METHOD
    for name, entry in catalog.load_methods().items():
        for key in TABLE_FIELDS:
            assert getattr(entry, key) == getattr(METHODS[name], key), (name, key)
        assert entry.defaults == get_default_parameters(name), name
        assert [type(one) for one in entry.defaults.values()] == [
            type(one) for one in get_default_parameters(name).values()
        ]
    assert {one.name: one.type_names for one in catalog.load_methods()["gr"].parameters}["schedule"] == ("str",)


def test_method_catalog_states_the_needs_and_reproduction_of_each_method(monkeypatch):
    entries = catalog.load_methods()
    assert entries["gr"].needs_description == "" and "no: " in entries["gr"].reproduced
    assert "maps" in entries["lagc"].all_needs and "all labels" in entries["oracle"].all_needs
    assert {entry.verdict for entry in entries.values()} <= set(catalog.REPRODUCTION_VERDICTS)
    for wrong, said in (({"needs": ("txt",)}, "Did you mean 'text'"), ({"reproduced": "maybe"}, "must be one of no, ")):
        monkeypatch.setitem(METHODS, "an", type("Wrong", (AN,), wrong))
        with pytest.raises(ValueError, match=said):
            format_table()


def test_paper_citations_in_loss_docstrings_match_the_method_catalog():
    texts = {file: file.read_bytes() for file in catalog.TABLE_PATH.parent.parent.glob("*/*.py")}
    said = {file.name: " ".join((ast.get_docstring(ast.parse(text)) or "").split()) for file, text in texts.items()}
    for name, entry in catalog.load_methods().items():
        if "et al., " not in entry.paper:  # ours
            continue
        authors, title = entry.paper.split(", ", 1)
        venue = title.rpartition(", ")[2]
        citation = f"{authors} {entry.year}" if " " in venue else f"{authors}, {venue} {entry.year}"
        for file in (one for one in said if entry.url in said[one]):
            assert citation in said[file].partition(entry.url)[0], (name, file)


class Needs(AN):
    def __init__(self, eps): ...


class Odd(AN):
    def __init__(self, eps: dict | None = None): ...


class Both(AN):
    def __init__(self, eps: float | None = None, count: int = 2): ...


def test_method_catalog_refuses_parameters_without_default_or_plain_type(monkeypatch):
    for method in (Needs, Odd):
        monkeypatch.setitem(METHODS, "an", method)
        with pytest.raises(ValueError, match=r"Method 'an': parameter eps.* must have a default and a plain type"):
            format_table()
    monkeypatch.setitem(METHODS, "an", Both)
    assert (
        '{"name": "eps", "default": null, "kinds": ["float", "None"]}, {"name": "count", "default": 2' in format_table()
    )

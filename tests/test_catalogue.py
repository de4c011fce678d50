"""The methods as they are read without torch are the methods as they are."""

import ast
import re

import pytest

from models import catalogue
from models.methods import DEFAULT_METHOD, METHODS, defaults_of


def test_what_is_read_without_torch_is_what_the_classes_say():
    assert list(catalogue.methods()) == list(METHODS)
    assert catalogue.default_method() == DEFAULT_METHOD
    for name, entry in catalogue.methods().items():
        for key in catalogue.WANTED:
            assert getattr(entry, key) == getattr(METHODS[name], key), (name, key)
        assert entry.defaults == defaults_of(name), name
        assert [type(one) for one in entry.defaults.values()] == [type(one) for one in defaults_of(name).values()]


def test_methods_and_losses_say_the_same_of_a_paper():
    texts = {file: file.read_bytes() for file in catalogue.METHODS.parent.glob("*/*.py")}
    said = {file.name: " ".join((ast.get_docstring(ast.parse(text)) or "").split()) for file, text in texts.items()}
    for name, entry in catalogue.methods().items():
        if "et al., " not in entry.paper:  # ours
            continue
        authors, title = entry.paper.split(", ", 1)
        for file in (one for one in said if entry.url in said[one]):
            # In quotes, then venue and year, in the files; after a comma, and on its own, in the table.
            cited, venue = re.search(r'et al\., "([^"]+)",(.*)', said[file].partition(entry.url)[0]).groups()
            rest = title.removeprefix(cited).removeprefix(", ")
            assert authors in said[file] and title.startswith(cited), (name, file)
            assert rest in venue and str(entry.year) in venue, (name, file)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table of one method, whose file the test writes."""
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "__init__.py").write_text(
        "from models.methods.one import One\nMETHODS = {one.name: one for one in (One,)}\n"
    )
    monkeypatch.setattr(catalogue, "METHODS", tmp_path / "methods")
    catalogue.methods.cache_clear()
    yield tmp_path / "methods"
    catalogue.methods.cache_clear()


HEAD = "name, title, paper = '', '', ''\nclass One:\n    name = 'one'\n    title = 'One'\n    paper = 'A, B'\n"


def test_constants_of_the_file_and_what_a_class_inherits_are_read(folder):
    (folder / "base.py").write_text("class Base:\n    url: str = 'u'\n    full_labels: bool = False\n    year = 1\n")
    (folder / "one.py").write_text(
        "from models.methods.base import Base\nYEAR = 2021\n"
        + HEAD.replace("One:", "One(Base):")
        + "    year = YEAR\n    assumes = ('a '\n        'b')\n"
        "    def __init__(self, a: float = 1e-5, b: 'str' = 'x', *, c: float | None = None, d=25 / YEAR): ...\n"
    )
    [entry] = catalogue.methods().values()
    assert (entry.year, entry.assumes, entry.url, entry.full_labels) == (2021, "a b", "u", False)
    assert entry.defaults == {"a": 1e-5, "b": "x", "c": None, "d": 25 / 2021}
    assert entry.parameters[2].kinds == ("float", "None")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("    year = 2000 + f()\n", r"one.py, line 6: f\(\) is not a plain value"),
        ("    year = 2000\n", "class One does not say its url, assumes, full_labels"),
        ("    def __init__(self, a): ...\n", "line 6: every argument of __init__ must have a default"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(folder, body, told):
    (folder / "one.py").write_text(HEAD + body)
    with pytest.raises(ValueError, match=told):
        catalogue.methods()

"""Which tests and types `make check` looks at after a change."""

import tomllib
from pathlib import Path

import pytest
from nearest_tests import find_nearest_tests
from nearest_types import CHECKED_FOLDERS, find_nearest_modules

TEXTS = {
    Path("tests/store/test_decide.py"): "from annotator.errors import AnnotatorError\n",
    Path("tests/ui/test_undo.py"): "from annotator.store.labels import (\n    counting,\n    decide,\n)\n",
    Path("tests/ui/test_menus.py"): "from annotator.store.labels.decide import store_decision\n",
    Path("tests/ui/test_other.py"): "from annotator.store.labels import counting\nfrom spmll.losses import base\n",
}


@pytest.mark.parametrize(
    ("changed", "nearest"),
    [
        (["annotator/store/labels/decide.py"], ["test_decide", "test_menus", "test_undo"]),
        (["models/spmll/losses/base.py"], ["test_other"]),
        (["tests/ui/test_menus.py", "annotator/store/labels/decide.py"], ["test_menus", "test_decide", "test_undo"]),
        (["README.md", "annotator/ui/pages/grid/grid.js"], []),
    ],
)
def test_changed_module_leads_to_tests_named_after_it_and_then_to_those_that_import_it(changed, nearest):
    assert [file.stem for file in find_nearest_tests(changed, TEXTS)] == nearest


def test_types_of_a_changed_module_are_checked_with_those_of_the_modules_that_import_it():
    texts = {Path("annotator/ui/undo.py"): "from annotator.store.labels import decide\n"}
    texts |= {Path("annotator/ui/menus.py"): "import json\n", Path("annotator/store/labels/decide.py"): ""}
    near = find_nearest_modules(["annotator/store/labels/decide.py", "README.md"], texts)
    assert [file.name for file in near] == ["undo.py", "decide.py"]


def test_nearest_types_look_into_the_same_folders_as_all_types():
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert list(CHECKED_FOLDERS) == settings["tool"]["basedpyright"]["include"]

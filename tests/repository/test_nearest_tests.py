"""Which tests `make check` runs after a change."""

from pathlib import Path

import pytest
from nearest_tests import find_nearest_tests

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

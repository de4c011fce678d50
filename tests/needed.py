"""Ends pytest with one sentence where the packages that the tests import are not installed.

conftest.py imports this module before all others that may be missing. Packages that single tests import and skip
without (pytest.importorskip) are not listed. Being first, it also has pytest show the values of failed asserts in
tests/harness, as in tests.
"""

import sys
from importlib.util import find_spec

import pytest

OF_THE_TEST_EXTRA = (
    "axe_playwright_python",
    "cryptography",
    "httpx",
    "hypothesis",
    "joserfc",
    "onnx",
    "playwright",
    "pycocotools",
    "tifffile",
)
OF_THE_PROGRAM = ("PIL", "filelock", "numpy", "sqlite_utils", "streamlit", "torch", "typer")
USAGE_ERROR = 4  # pytest's status

missing = [name for name in (*OF_THE_TEST_EXTRA, *OF_THE_PROGRAM) if find_spec(name) is None]
if missing:
    print(
        f"The tests need more ({', '.join(missing)}): pip install -e models -e '.[test]' (or: make test)",
        file=sys.stderr,
    )
    sys.exit(USAGE_ERROR)

pytest.register_assert_rewrite("harness")

"""Features of Streamlit that a new version may change are used in one module, annotator/ui/streamlit_features.py."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FEATURES = ROOT / "annotator/ui/streamlit_features.py"
YOUNG_NAMES = {"App", "components"}  # of `st`: st.App, st.components.v2


def test_only_one_module_uses_young_or_private_features_of_streamlit():
    modules = [path for path in (ROOT / "annotator").rglob("*.py") if "streamlit" in path.read_text(encoding="utf-8")]
    found = {path: _find_features(path.read_text(encoding="utf-8")) for path in modules}
    assert len(found.pop(FEATURES)) > 5
    wrong = {path.relative_to(ROOT).as_posix(): names for path, names in found.items() if names}
    assert not wrong, f"Give these to annotator/ui/streamlit_features.py, or use a public function of st: {wrong}"


def test_search_for_features_tells_public_functions_from_the_rest():
    code = {
        "import streamlit as st\nst.button('a')\nst.session_state._x": [],
        "import streamlit as st\nst.App": ["st.App"],
        "import streamlit as st\nst.components.v2.component": ["st.components"],
        "import streamlit as st\nst._main": ["st._main"],
        "import streamlit as st\nst.__file__": ["st.__file__"],
        "import streamlit.web.bootstrap": ["streamlit.web.bootstrap"],
        "import streamlit": ["streamlit"],
        "from streamlit import config": ["streamlit"],
        "def f():\n    from streamlit.runtime import exists": ["streamlit.runtime"],
    }
    assert {text: _find_features(text) for text in code} == code


def _find_features(text: str) -> list[str]:
    """Return what a module imports of Streamlit but `streamlit as st`, and the names of `st` that are not settled."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                found += [
                    alias.name
                    for alias in names
                    if alias.name.partition(".")[0] == "streamlit" and (alias.name, alias.asname) != ("streamlit", "st")
                ]
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] == "streamlit":
                found.append(module)
            case ast.Attribute(value=ast.Name(id="st"), attr=name) if name in YOUNG_NAMES or name.startswith("_"):
                found.append(f"st.{name}")
    return found

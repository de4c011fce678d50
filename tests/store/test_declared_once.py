"""What several modules need is declared in one of them, and the others import it."""

import ast
import re
from collections import Counter

import pytest
from code_measures import ROOT, CodeBase

STEPS = "annotator/store/schema/"  # schema steps stay as they were released


@pytest.fixture(scope="module")
def code() -> CodeBase:
    return CodeBase()


def list_modules_with(code: CodeBase, pattern: str) -> list[str]:
    """Return the modules, without schema steps, that have a match; \\s+ in the pattern stands for any line break."""
    found = re.compile(pattern)
    return [path for path, text in code.texts.items() if found.search(text) and not path.startswith(STEPS)]


@pytest.mark.slow
def test_only_process_claims_module_checks_whether_a_claiming_process_has_ended(code):
    assert list_modules_with(code, r"(?<!def )has_claimant_ended\(") == ["annotator/store/database/process_claims.py"]


def test_only_decision_sql_module_contains_the_sql_condition_for_undone_decisions(code):
    condition = r"EXISTS\s*\(\s*SELECT\s+1\s+FROM\s+\S+\s+\w+\s+WHERE\s+\w+\.undoes\b"
    assert list_modules_with(code, condition) == ["annotator/store/database/decision_sql.py"]


def test_only_decision_sql_module_contains_the_query_for_the_newest_decision(code):
    query = r"max\(id\)[^()]*\)?\s*FROM\s+decision\b(?!\s+(?:d\b|WHERE))"
    assert list_modules_with(code, query) == ["annotator/store/database/decision_sql.py"]


def test_only_progress_callbacks_module_declares_progress_callback_types(code):
    shape = r"Callable\[\[(str, )?int(, int)?(, str)?\], None\]"
    drops = {
        "annotator/ui/pages/classes/class_relations.py",
        "annotator/ui/pages/classes/class_tree_component.py",
    }  # of a class in a tree
    found = [path for path in list_modules_with(code, shape) if path.startswith("annotator/")]
    found = {path for path in found if not path.startswith("annotator/benchmark/")}
    assert found - drops == {"annotator/progress_callbacks.py"}


def test_only_process_stop_module_watches_stdin_for_the_end_of_the_parent_process(code):
    reads = r"stdin(\.buffer)?\.read\(\)|os\.read\(0,"
    scripts = {
        "annotator/cluster/exit_watcher.py",
        "tests/harness/child_runner.py",
    }  # load nothing of ours
    assert {*list_modules_with(code, reads)} - scripts == {"annotator/process_stop.py"}


def test_only_process_stop_module_defines_stop_on_signals(code):
    assert list_modules_with(code, r"def _?stop_on_signals\(stop: threading\.Event") == ["annotator/process_stop.py"]


def test_only_cluster_machines_module_declares_the_machine_class(code):
    assert list_modules_with(code, r"(?m)^class Machine\b") == ["annotator/cluster/machines.py"]
    assert list_modules_with(code, "offers no cores to work with") == ["annotator/cluster/machines.py"]


def test_only_widget_values_module_restores_widget_values_in_the_session_state(code):
    mirrors = r"(?:state|session_state|fields)\[key\] = "
    assert list_modules_with(code, mirrors) == ["annotator/ui/shared/widget_values.py"]
    assert list_modules_with(code, r"change_refused") == ["annotator/ui/shared/widget_values.py"]


def test_every_module_level_name_is_used_somewhere(code):
    folders = ("annotator", "models", "tests", "docs")
    paths = [ROOT / "pyproject.toml", *(path for folder in folders for path in (ROOT / folder).rglob("*.*"))]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.suffix in (".py", ".md", ".toml")]
    uses = Counter(word for text in texts for word in re.findall(r"\w+", text))
    names = {
        (path, name)
        for path, tree in code.trees.items()
        if not path.startswith((STEPS, "annotator/benchmark/"))
        for node in tree.body
        for name in list_assigned_names(node)
    }
    assert [f"{path}: {name}" for path, name in sorted(names) if uses[name] == 1] == []


def list_assigned_names(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module defines, without functions that a decorator registers."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [] if node.decorator_list and not isinstance(node, ast.ClassDef) else [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]

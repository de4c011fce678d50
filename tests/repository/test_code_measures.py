"""Names carry their noun, and the figures of code_measures.py stay within their bounds."""

import pytest
from code_measures import OTHER_FOLDERS, CodeBase, measure_code


@pytest.fixture(scope="module")
def code() -> CodeBase:
    return CodeBase()


@pytest.fixture(scope="module")
def others() -> CodeBase:
    return CodeBase(folders=OTHER_FOLDERS)


@pytest.fixture
def small_code(tmp_path) -> CodeBase:
    """Three modules that break each rule once, and a command, which may have many parameters."""
    package = tmp_path / "annotator"
    for room in ("store", "ui"):
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").touch()
    (package / "store" / "images.py").write_text(
        '"""Images; all of them."""\n\nLARGEST = MOST_IMAGES = 5\n\n\ndef checked(rows):\n    """Return them."""\n'
    )
    (package / "ui" / "images.py").write_text(
        "from annotator.store import images as stored\n\n\ndef name_of(row):\n    return stored.checked(row)\n"
    )
    parameters = ", ".join(f"option_{number}" for number in range(11))
    (package / "cli").mkdir()
    (package / "cli" / "train.py").write_text(
        f"@commands.command('train')\ndef train_network({parameters}): ...\n\n\n"
        f"class Network:\n    def __init__(self, {parameters}): ...\n"
        f"    def fit_network(self, {parameters.removesuffix(', option_10')}): ...\n"
    )
    return CodeBase(tmp_path)


@pytest.mark.slow
def test_code_measures_stay_within_their_limits(code, others):
    rows = measure_code(code, others)
    exceeded = [f"{row.name}: {row.value:.1f}, bound {row.bound:g}" for row in rows if row.value > row.bound]
    assert not exceeded, f"see `python tests/code_measures.py`: {'; '.join(exceeded)}"


def test_function_names_contain_no_past_participle(code):
    assert code.list_participles() == [], "name the verb and its object: _checked -> _check_rows"


def test_functions_take_at_most_ten_parameters(code):
    assert code.list_long_signatures() == [], "parameters that travel together are a frozen dataclass"


def test_own_modules_are_not_imported_under_an_alias(code, others):
    aliases = [*code.list_aliases(code.modules), *others.list_aliases(code.modules)]
    assert aliases == [], "rename the module, or import the function"


def test_each_code_measure_finds_its_violations(small_code):
    assert small_code.list_long_signatures() == ["annotator/cli/train.py: Network.__init__ (11)"]
    assert small_code.list_participles() == ["annotator/store/images.py: checked"]
    assert small_code.list_aliases(small_code.modules) == [
        "annotator/ui/images.py:1: from annotator.store import images as stored",
    ]
    assert small_code.list_repeated_file_names() == ["images.py"]
    values = {row.name: row.value for row in measure_code(small_code, CodeBase(small_code.root, ()))}
    assert values["functions with one-word names, %"] == 25
    assert values["functions with more than 10 parameters"] == 1
    assert values["functions named *_of"] == 1
    assert values["module constants of one word, %"] == 50
    assert values["words in docstrings, thousands"] == pytest.approx(0.006)
    assert values["semicolons per 1,000 words of docstrings"] == pytest.approx(1000 / 6)

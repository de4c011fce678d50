"""The scripts of the pages, as a compiler reads them: the types their comments promise are the types they use."""

import subprocess
from pathlib import Path

import pytest
from get_typescript import get_typescript

pytestmark = pytest.mark.process

COMPONENTS = Path(__file__).resolve().parents[2] / "annotator" / "ui" / "pages"
SCRIPTS = sorted(COMPONENTS.glob("*/*.js"))


@pytest.fixture(scope="module")
def tsc() -> list[str]:
    return get_typescript()


def run(tsc: list[str], *words: str, cwd: Path = COMPONENTS) -> subprocess.CompletedProcess:
    return subprocess.run([*tsc, *words], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def test_page_scripts_pass_the_type_check(tsc):
    done = run(tsc, "--project", "jsconfig.json", "--pretty", "false")
    assert done.returncode == 0, done.stdout + done.stderr


def test_type_check_covers_every_script(tsc):
    read = {Path(line) for line in run(tsc, "--project", "jsconfig.json", "--listFilesOnly").stdout.splitlines()}
    assert SCRIPTS and set(SCRIPTS) <= read
    unchecked = [path.name for path in SCRIPTS if not path.read_text(encoding="utf-8").startswith("// @ts-check\n")]
    assert unchecked == []
    silenced = [path.name for path in SCRIPTS if "@ts-ignore" in path.read_text(encoding="utf-8")]
    assert silenced == []


def test_script_type_check_reports_a_wrong_argument_type(tsc, tmp_path):
    config = (COMPONENTS / "jsconfig.json").read_text(encoding="utf-8")
    (tmp_path / "jsconfig.json").write_text(config, encoding="utf-8")
    (tmp_path / "wrong.js").write_text('// @ts-check\n/** @param {number} one */\nfunction f(one) {}\nf("two");\n')
    done = run(tsc, "--project", "jsconfig.json", "--pretty", "false", cwd=tmp_path)
    assert "wrong.js(4,3)" in done.stdout and done.returncode != 0

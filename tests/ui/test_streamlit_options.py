"""What lies in the working folder and in the home decides nothing: no option of Streamlit's, no module of Python's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness.child_processes import build_environment
from harness.served import Served, until
from streamlit import config

from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.ui.serving.streamlit_options import PINNED_OPTIONS, THEME_OPTIONS


def words(text: str) -> list[str]:
    return text.split()


# Judged one by one: how things look, how quick they are, how they are logged. None lets anybody in, none fetches.
HARMLESS = words("""
global.disableWidgetStateDuplicationWarning global.showWarningOnDirectExecution global.suppressDeprecationWarnings
global.minCachedMessageSize global.maxCachedMessageAge logger.level logger.messageFormat logger.enableRich
client.showErrorDetails client.disableDataExport runner.magicEnabled runner.fastReruns
runner.enforceSerializableSessionState runner.enumCoercion runner.parallelMaxWorkers
runner.cacheBackgroundRefreshMaxWorkers runner.cacheBackgroundRefreshTTLMultiplier runner.connectionDefaultTTL
runner.cacheHashSeed server.folderWatchBlacklist server.enableExpensiveMemoryStats server.maxCacheDataSize
server.enableWebsocketCompression server.websocketPingInterval server.disconnectedSessionTTL server.agentWaitTimeout
server.agentSessionTTL server.agentPreviewRows ui.hideTopBar magic.displayRootDocString
magic.displayLastExprIfNoSemicolon
""")
# These would not be, but cannot be pinned: a secret is refused by App.run, "no theme file" is None. No file is read.
READ_FROM_NOWHERE = ["server.cookieSecret", "theme.base"]
# The same in every section of the theme: colours, sizes and the names of fonts.
THEME = words("""
primaryColor backgroundColor secondaryBackgroundColor textColor redColor orangeColor yellowColor blueColor greenColor
violetColor grayColor redBackgroundColor orangeBackgroundColor yellowBackgroundColor blueBackgroundColor
greenBackgroundColor violetBackgroundColor grayBackgroundColor redTextColor orangeTextColor yellowTextColor
blueTextColor greenTextColor violetTextColor grayTextColor linkColor linkUnderline codeTextColor codeBackgroundColor
font baseFontSize baseFontWeight metricValueFontSize metricValueFontWeight headingFont headingFontSizes
headingFontWeights codeFont codeFontSize codeFontWeight baseRadius buttonRadius paddingTop paddingBottom borderColor
dataframeBorderColor dataframeHeaderBackgroundColor dataframeHeaderTextColor showWidgetBorder showSidebarBorder
chartCategoricalColors chartSequentialColors chartDivergingColors
""")
SECTIONS = ("", "sidebar.", "light.", "dark.", "light.sidebar.", "dark.sidebar.")

HOSTILE = """
[server]
enableCORS = false
enableXsrfProtection = false
allowedHosts = ["*"]
corsAllowedOrigins = ["http://evil.example"]
enableAgentApi = true
enableStaticServing = true
scriptHealthCheckEnabled = true
address = "0.0.0.0"
trustedUserHeaders = {X-User = "email"}
baseUrlPath = "elsewhere"
maxMessageSize = 0
[browser]
gatherUsageStats = true
serverAddress = "evil.example"
[client]
allowedOrigins = ["http://evil.example"]
[theme]
base = "http://evil.example/theme.toml"
primaryColor = "red"
[[theme.fontFaces]]
family = "Evil"
url = "http://evil.example/font.woff2"
[global]
developmentMode = true
[logger]
level = "debug"
"""
EFFECTIVE = """
import json
from annotator.ui.access.serving_modes import build_local_access
from annotator.ui.serving.streamlit_options import build_options
from streamlit import config
from streamlit.web import bootstrap
bootstrap.load_config_options(build_options(build_local_access(8501)))
from streamlit.runtime.secrets import secrets_singleton
found = {name: config.get_option(name) for name in config._config_options_template if name != "server.cookieSecret"}
print(json.dumps(found | {"secrets": secrets_singleton.load_if_toml_exists()}))
"""
MODULES = words("""
annotator spmll streamlit starlette uvicorn numpy torch filelock sqlite_utils typer PIL json logging queue random
socket threading multiprocessing subprocess tempfile runpy sitecustomize usercustomize
""")


def hostile(folder: Path, said: str = HOSTILE) -> Path:
    """A folder as it may come with a data set: settings of Streamlit's, and modules that leave a mark when they run."""
    (folder / ".streamlit").mkdir(parents=True)
    (folder / ".streamlit" / "config.toml").write_text(said)
    (folder / ".streamlit" / "secrets.toml").write_text('[auth]\ncookie_secret = "known"\nredirect_uri = "http://x"\n')
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'ran')!r}, 'a').write({name!r} + ' ')\n")
    return folder


def effective(folder: Path, **variables: str) -> dict:
    """Every option as the server in this folder has it, and whether a secret was read."""
    environment = os.environ | {"HOME": str(folder)} | variables
    done = subprocess.run(
        [sys.executable, "-P", "-c", EFFECTIVE],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_streamlit_option_is_pinned_or_listed_as_harmless():
    theme = [f"theme.{section}{name}" for section in SECTIONS for name in THEME]
    judged = {
        *PINNED_OPTIONS,
        *THEME_OPTIONS,
        *HARMLESS,
        *READ_FROM_NOWHERE,
        *theme,
        "server.port",
        "browser.serverPort",
    }
    new = set(config._config_options_template) - judged
    assert not new, f"Streamlit has options that nobody has judged: pin them, or say that they are harmless: {new}"
    gone = {*PINNED_OPTIONS, *THEME_OPTIONS} - set(config._config_options_template)
    assert not gone, f"Streamlit has these no more: {gone}"


@pytest.mark.process
def test_streamlit_config_files_and_environment_variables_change_no_streamlit_option(tmp_path):
    (tmp_path / "clean").mkdir()
    clean = effective(tmp_path / "clean")
    assert {name: clean[name] for name in PINNED_OPTIONS} == PINNED_OPTIONS and not clean["secrets"]
    variables = {"STREAMLIT_SERVER_ENABLE_CORS": "false", "STREAMLIT_SERVER_COOKIE_SECRET": "known"}
    assert effective(hostile(tmp_path / "hostile"), **variables) == clean
    assert effective(hostile(tmp_path / "broken", "this is [[ no TOML")) == clean


@pytest.mark.slow
@pytest.mark.process
def test_serve_and_benchmark_servers_run_no_code_from_the_working_folder(project, tmp_path, processes):
    """`serve` with its worker, and a server of a measurement, as the benchmarks start them."""
    folder = hostile(tmp_path / "dataset")
    served = Served(project, processes, cwd=folder, env=os.environ | {"HOME": str(folder)})
    until(lambda: heartbeat.load_worker_state(Database(project)).alive)
    assert served.get("/api/image/1")[0] == 200
    for path in ("/_stcore/agent", "/_stcore/agent/sessions", "/_stcore/script-health-check", "/app/static/x"):
        assert served.get(path)[0] in (403, 404) or b"<!doctype html>" in served.get(path)[1].lower(), path
    measurement = (
        "from harness.child_processes import run_server\nwith "
        f"run_server('harness.page_alone', {str(project)!r}): print('answers')\n"
    )
    command = [sys.executable, "-P", "-c", measurement]
    done = subprocess.run(command, cwd=folder, env=build_environment(), capture_output=True, text=True, check=False)
    assert done.stdout == "answers\n"
    assert not (folder / "ran").exists(), (folder / "ran").read_text()
    assert not {path.name for path in folder.iterdir()} & {"__pycache__", "project.db"}


COMMANDS = """
import sys
from typer.main import get_command
from annotator.cli import app
project, photos, labels, scores = sys.argv[1:]
called = [
    ["init", project, "--images", photos, "--labels", labels],
    ["methods"],
    ["worker", project, "--once"],
    ["train", project],
    ["decide", project, "01.jpg", "heron", "present"],
    ["suggest", project],
    ["status", project, "--json"],
    ["history", project, "01.jpg"],
    ["classes", project],
    ["audit", project, "--cells", "6"],
    ["certificate", project],
    ["accept", project, "--list"],
    ["pace", project],
    ["agreement", project],
    ["people", project],
    ["undo", project],
    ["export", project, project + "-labels.csv", "--tag", "now"],
    ["import", project, project + "-labels.csv", "--yes"],
    ["imports", project],
    ["predictions", project, scores, "--name", "other"],
    ["classifier", project, project + ".onnx"],
    ["classify", project + ".onnx", photos, "--to", project + "-found.csv"],
    ["tags", project],
    ["diff", project, "now"],
    ["tokens", project],
    ["members", project],
    ["assign", project],
    ["home", project, "--auth", "invitation", "--url", "https://labels.example.org", "--caddyfile"],
    ["formats"],
    ["backbones"],
    ["backbone", project],
    ["bands", project],
    ["events", project],
    ["relations", project],
    ["embed", project],
    ["adapted", project],
    ["names", project],
    ["doctor", project],
    ["backup", project, project + "-backup"],
    ["restore", project + "-backup", project + "-again"],
]
for words in called:
    app(words, standalone_mode=False)
left = set(get_command(app).commands) - {words[0] for words in called}
print("\\n" + " ".join(sorted(left)), sorted({"", "."} & set(sys.path)))
"""


@pytest.mark.slow
@pytest.mark.process
def test_commands_other_than_servers_run_no_code_from_the_working_folder(photos, tmp_path):
    folder = hostile(tmp_path / "dataset")
    (tmp_path / "labels.csv").write_text("image,labels\n00.jpg,fox\n01.jpg,fox|deer\n02.jpg,heron\n")
    (tmp_path / "scores.csv").write_text("image,fox,heron,deer\n00.jpg,0.9,0.1,0.2\n")
    places = [str(path) for path in (tmp_path / "project", photos, tmp_path / "labels.csv", tmp_path / "scores.csv")]
    command = [sys.executable, "-P", "-c", COMMANDS, *places]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "adapt bench demo link serve tag []", (
        "the others are called here, and those above"
    )
    assert not (folder / "ran").exists(), (folder / "ran").read_text()

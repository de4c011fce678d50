"""A program that runs commands and all pages where the extra `train` is missing, and the commands that it refuses.

It needs a folder with photos, classes.txt and labels.csv, and the list REFUSED_COMMANDS in front of it.
"""

COMMANDS_AND_PAGES = """
import os, sys
from pathlib import Path
from annotator.__main__ import main
from annotator.errors import TrainingNotInstalled

def run(words, code=0):
    sys.argv, status = ["annotator", *words.split()], 0
    print(">", words, flush=True)
    try:
        main()
    except SystemExit as ended:
        status = ended.code or 0
    sys.stdout.flush()
    assert status == code, (words, status)

os.dup2(1, 2)
run("--help")
run("init birds --images photos --classes classes.txt")
run("import birds labels.csv --yes")
run("decide birds 03.jpg deer present")
run("export birds out.csv --format csv")
run("methods")
run("backbones birds")
run("doctor birds")
run("status birds")
for words in REFUSED_COMMANDS:
    run(words, code=1)

import annotator
with annotator.open("birds") as project:
    assert len(project.labels()) == 3
    try:
        project.dataset()
    except TrainingNotInstalled as error:
        print("dataset:", error)

from streamlit.testing.v1 import AppTest
from annotator.ui.access import served_project
from annotator.ui.shared.navigation import PAGES, find_page_module
served_project.open_project(Path("birds"))
names = [page.name for page in PAGES]
for shown in (["export"], [name for name in names if name != "export"]):  # certificate and export share a key
    script = "".join(f"from {find_page_module(name)} import page\\npage()\\n" for name in shown)
    test = AppTest.from_string(script, default_timeout=60)
    test.session_state["name"] = "Ann"
    test.run()
    assert not test.exception and not test.error, (test.exception, test.error)
    print("pages:", *(info.value for info in test.info))
"""

REFUSED_COMMANDS = (
    "train birds",
    "worker birds --once",
    "embed birds",
    "adapt birds",
    "classifier birds birds.onnx",
    "methods auto",
    "bench methods",
    "init birds --backbone efficientnet_lite0",
)

"""The Export page run by AppTest of Streamlit: its widgets, an export, and the exported files."""

import zipfile

from streamlit.testing.v1 import AppTest

from annotator.store.database.database import Database
from annotator.ui.access import served_project
from annotator.ui.shared.work.export_runner import get_export_runner
from harness.page_scripts import fine, shown


def page(db: Database, **state: object) -> AppTest:
    """The page with these widgets set, once everything is counted."""
    test = shown(db, "export")
    for key, value in state.items():
        test.session_state[key] = value
    return settled(test)


def settled(test: AppTest) -> AppTest:
    for _ in range(100):  # each waits for a moment
        if not fine(test.run()).get("progress"):
            return test
    raise AssertionError("it is still counting")


def press(test: AppTest) -> AppTest:
    """Press Export, and wait for it."""
    fine(test.button(key="export_start").click().run())
    get_export_runner(served_project.db()).wait()
    return settled(test)


def content() -> dict[str, bytes]:
    """The files of the newest export: those in its zip, or in its folder on the server."""
    outcome = get_export_runner(served_project.db()).outcomes[0]
    assert not outcome.error, outcome.error
    if outcome.folder:
        files = [path for path in outcome.folder.rglob("*") if path.is_file()]
        return {path.relative_to(outcome.folder.parent).as_posix(): path.read_bytes() for path in files}
    with zipfile.ZipFile(outcome.offered.path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}

"""What pages are made of: our scripts as one module each, and Streamlit's own files."""

import re
from pathlib import Path

import pytest
from harness.served import Served, serving
from starlette.applications import Starlette
from starlette.testclient import TestClient

from annotator.ui.serving.script_bundles import COMPONENTS_FOLDER, build_bundle
from annotator.ui.serving.streamlit_files import StaticFilesMiddleware
from annotator.ui.serving.streamlit_static import MAX_KEPT_BYTES, get_static_folder, list_static_files

STATIC_FOLDER = get_static_folder() / "static"


def test_bundle_defines_each_imported_script_once_and_before_its_use():
    for file in COMPONENTS_FOLDER.glob("*/*.js"):
        module = build_bundle(file.relative_to(COMPONENTS_FOLDER).as_posix())
        assert module is not None
        text = module.text
        made = {match[1]: match.start() for match in re.finditer(r"^modules\['([^']+)'\] = ", text, re.MULTILINE)}
        used = [(match[1], match.start()) for match in re.finditer(r"= modules\['([^']+)'\]", text)]
        assert all(made[name] < at for name, at in used), file
        assert len(made) == len(re.findall(r"^modules\[", text, re.MULTILINE)), file


def test_build_bundle_returns_none_for_a_missing_script():
    assert build_bundle("annotate/nothing.js") is None and build_bundle("../server.py") is None


@pytest.mark.process
def test_streamlit_static_files_are_served_unchanged_with_caching_and_require_the_cookie(project):
    with serving(project) as served:
        largest = max(STATIC_FOLDER.rglob("*.js"), key=lambda path: path.stat().st_size)
        assert largest.stat().st_size > MAX_KEPT_BYTES
        for path in (largest, next(STATIC_FOLDER.rglob("index.*.js")), next(STATIC_FOLDER.rglob("index.*.css"))):
            for _ in range(2):  # the second time from memory
                status, body, headers = served.get(f"/static/{path.relative_to(STATIC_FOLDER).as_posix()}")
                assert status == 200 and body == path.read_bytes()
                assert "immutable" in headers["cache-control"]
        assert served.get("/static/js/nothing.js")[2]["content-type"].startswith("text/html"), "Streamlit's own answer"
        assert without_cookie(served, next(STATIC_FOLDER.rglob("index.*.js"))) == 403


@pytest.mark.parametrize(
    ("compress", "accepted", "encoding"), [(True, "gzip", "gzip"), (True, "br", None), (False, "gzip", None)]
)
def test_scripts_are_compressed_over_a_network_for_browsers_that_accept_it(compress, accepted, encoding):
    url, path = next((url, path) for url, path in list_static_files().items() if "/js/index." in url)
    answer = TestClient(StaticFilesMiddleware(Starlette(), compress=compress)).get(
        url, headers={"accept-encoding": accepted}
    )
    assert answer.headers.get("content-encoding") == encoding and answer.content == path.read_bytes()
    assert encoding is None or int(answer.headers["content-length"]) < len(answer.content) / 2


def without_cookie(served: Served, path: Path) -> int:
    served.headers = {**served.headers, "cookie": ""}
    return served.get(f"/static/{path.relative_to(STATIC_FOLDER).as_posix()}")[0]

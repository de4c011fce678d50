"""Streamlit's HTML page with the server's URL added, which saves two failing requests."""

from functools import cache

from starlette.requests import Request
from starlette.responses import HTMLResponse

from annotator.ui.access import served_project
from annotator.ui.streamlit_features import SHIPPED_FILES_FOLDER

INDEX_FILE = SHIPPED_FILES_FOLDER / "index.html"
STREAMLIT_TITLE = "<title>Streamlit</title>"  # until the script of the page has given it another
TITLE_WITH_BACKEND_URL = (
    "<title>Annotator</title><script>window.__streamlit = {BACKEND_BASE_URL: window.location.origin + '%s'}</script>"
)


async def send_index_page(request: Request) -> HTMLResponse:
    return HTMLResponse(_render_index_page(), headers={"cache-control": "no-cache"})


@cache
def _render_index_page() -> str:
    base = served_project.base_path()  # letters, digits and . _ ~ - / only (serving_modes.py)
    return INDEX_FILE.read_text(encoding="utf-8").replace(STREAMLIT_TITLE, TITLE_WITH_BACKEND_URL % base)

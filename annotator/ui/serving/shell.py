"""The HTML file that every page begins with: Streamlit's own, with the address of its server added.

Without it Streamlit's script takes /grid for a folder that its server may be in and asks there first, which costs two
requests that are not found. A host names the address in `window.__streamlit`.
"""

from functools import cache
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse

from annotator.ui.access import context

INDEX = Path(st.__file__).parent / "static" / "index.html"
TITLE = "<title>Streamlit</title>"  # until the script of the page has given it another
TOLD = "<title>Annotator</title><script>window.__streamlit = {BACKEND_BASE_URL: window.location.origin + '%s'}</script>"


async def shell(request: Request) -> HTMLResponse:
    """Return the HTML of a page's address."""
    return HTMLResponse(_shell(), headers={"cache-control": "no-cache"})


@cache
def _shell() -> str:
    base = context.base()  # letters, digits and . _ ~ - / only (serving_modes.py)
    return INDEX.read_text(encoding="utf-8").replace(TITLE, TOLD % base)

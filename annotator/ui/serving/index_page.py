"""The route of every page of the app: Streamlit's HTML page."""

from starlette.requests import Request
from starlette.responses import HTMLResponse

from annotator.ui.access import served_project
from annotator.ui.serving.streamlit_static import INDEX_HEADERS, render_index_page


async def send_index_page(request: Request) -> HTMLResponse:
    return HTMLResponse(render_index_page(served_project.base_path()), headers=INDEX_HEADERS)

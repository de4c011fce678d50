"""The file chooser of the Import page (upload.js)."""

from annotator.exchange.sources.fetch_folder import format_size
from annotator.ui.access import served_project
from annotator.ui.pages.imports.uploaded_files import MAX_FILE_BYTES
from annotator.ui.shared.annotator_name import create_token
from annotator.ui.shared.components import call_component, get_component


def mount_upload() -> None:
    """Put the import file chooser on the page."""
    data = {
        "token": create_token(),
        "base": served_project.base_path(),
        "largest": MAX_FILE_BYTES,
        "hint": f"or drop them here; at most {format_size(MAX_FILE_BYTES)} a file. They are removed once they are "
        "imported.",
        "too_large": f"is larger than {format_size(MAX_FILE_BYTES)}. Put it on the server's machine and give its path.",
    }
    call_component(
        get_component("upload", (), "upload", "imports"), data, key="upload", on_uploaded_change=lambda: None
    )

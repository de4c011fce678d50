"""Tiny OpenDocument workbooks, written as LibreOffice writes them."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

NAMESPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text", "style")
)
HIDDEN_STYLE = (
    '<office:automatic-styles><style:style style:name="ta2" style:family="table"><style:table-properties '
    'table:display="false"/></style:style></office:automatic-styles>'
)
REST_OF_ROW = '<table:table-cell table:number-columns-repeated="16380"/>'
REST_OF_SHEET = f'<table:table-row table:number-rows-repeated="1048000">{REST_OF_ROW}</table:table-row>'


def format_text_cell(text: str, attributes: str = "") -> str:
    """Return a cell with a text, or an empty cell."""
    paragraph = f"<text:p>{escape(text)}</text:p>" if text else ""
    return f'<table:table-cell office:value-type="string" {attributes}>{paragraph}</table:table-cell>'


def format_row(*cells: str) -> str:
    """Return a row of cells, which are texts or elements."""
    elements = (cell if cell.startswith("<") else format_text_cell(cell) for cell in cells)
    return f"<table:table-row>{''.join(elements)}{REST_OF_ROW}</table:table-row>"


def format_sheet(name: str, rows: Sequence[str], style: str = "ta1") -> str:
    """Return a sheet. The style "ta2" is that of a hidden one."""
    return f'<table:table table:name="{name}" table:style-name="{style}">{"".join(rows)}{REST_OF_SHEET}</table:table>'


def write_workbook(path: Path, *sheets: str, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write a workbook with these sheets."""
    body = f"<office:body><office:spreadsheet>{''.join(sheets)}</office:spreadsheet></office:body>"
    content = (
        f'<?xml version="1.0"?><office:document-content {NAMESPACES}>{HIDDEN_STYLE}{body}</office:document-content>'
    )
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
    return path

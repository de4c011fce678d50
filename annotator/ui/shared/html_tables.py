"""HTML tables that are accessible to screen readers and keyboard scrolling."""

from collections.abc import Sequence
from html import escape

import streamlit as st

STYLE = """<style>
.as-text {overflow: auto; max-height: 40rem; font-variant-numeric: tabular-nums;}
.as-text:focus-visible {outline: 3px solid light-dark(#0f7b6c, #43b5a2); outline-offset: 1px;}
.as-text table {border-collapse: collapse; width: 100%; font-size: 0.9rem;}
.as-text th, .as-text td {padding: 0.4rem 1rem 0.4rem 0; text-align: left; white-space: nowrap; font-weight: inherit;}
.as-text tr {border-bottom: 1px solid light-dark(#dfe3e1, #373d3b);}
.as-text thead th {position: sticky; top: 0; background: light-dark(#fcfcfb, #161817); font-weight: 600;}
</style>"""


def show(rows: Sequence[dict[str, str]], label: str) -> None:
    """Show rows with equal columns as an HTML table, whose rows are named by the first column.

    Args:
        rows: At least one.
        label: Screen reader label.
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in rows[0])
    lines = []
    for row in rows:
        first, *others = (escape(value) for value in row.values())
        cells = "".join(f'<td dir="auto">{value}</td>' for value in others)
        lines.append(f'<tr><th scope="row" dir="auto">{first}</th>{cells}</tr>')
    st.html(
        f'{STYLE}<div class="as-text" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )

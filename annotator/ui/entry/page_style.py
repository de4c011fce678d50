"""The style of all pages, and the mark of the open menu."""

import streamlit as st

PAGE_STYLE = """<style>
[data-testid="stMainBlockContainer"] {padding: 3.5rem 1.2rem 0.4rem; max-width: none;}
[data-testid="stDecoration"], [data-testid="stStatusWidget"], [data-testid="stMainMenu"] {display: none;}
[data-testid="stHeader"] {height: 3rem; min-height: 3rem;}
[data-testid="stTopNavSection"] {min-height: 2.75rem;}
[data-testid="stTopNavDropdownLink"] {min-height: 2.75rem;}
[data-testid="stLayoutWrapper"]:has(> .st-key-who) {position: absolute;}
.st-key-who {position: fixed; top: 2px; right: 1.2rem; width: auto; z-index: 999991;}
@media (min-width: 768px) {[data-testid="stToolbar"] {padding-right: calc(100vw - 28rem);}}
@media (max-width: 767px) {
  [data-testid="stSidebarNavLink"] {min-height: 2.25rem;}
  body:has([data-testid="stSidebar"][data-collapsed="false"]) .st-key-who {visibility: hidden;}
}
[data-testid="stHeading"] h3 {font-size: 1.2rem; letter-spacing: -0.01em; padding: 0.2rem 0 0.4rem;}
[data-testid="stMetricValue"] {font-size: 1.7rem; font-variant-numeric: tabular-nums;}
[data-testid="stMetric"] * {white-space: normal !important;}
[data-testid="stDownloadButton"] p, [data-testid="stCheckbox"] p {white-space: normal;}
[data-testid="stCaptionContainer"] {opacity: 0.8;}
[data-testid="stMarkdownContainer"] :is(p, li), [data-testid="stApp"] svg text {unicode-bidi: plaintext;}
[data-testid="stApp"] :is(textarea, input[type="text"]) {unicode-bidi: plaintext;}
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p {color: inherit;}
[data-testid^="stBaseButton-primary"]:enabled {color: light-dark(#fff, #06211c);}
[data-testid^="stBaseButton-primary"]:enabled :is(p, kbd) {color: inherit; opacity: 1;}
[data-testid="stElementToolbarButton"]:has([aria-label^="Download as CSV"]) {display: none;}
@media (max-width: 760px) {[data-testid="stMainBlockContainer"] {padding: 3.4rem 0.7rem 1rem;}}
</style>"""


def apply_style() -> None:
    """Hide Streamlit's menus, margins and table download, whose raw names a spreadsheet may run as formulas."""
    st.html(PAGE_STYLE)


def underline_menu(place: int) -> None:
    """Underline the top menu with this index, because Streamlit underlines only the open page."""
    menu = f'[data-testid="stTopNav"] > :nth-child({place + 1}) [data-testid="stTopNavSection"] > span'
    st.html(f"<style>{menu} {{font-weight: 650; box-shadow: 0 2px 0 currentColor;}}</style>")

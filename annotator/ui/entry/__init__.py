"""Streamlit's entry, alone in its folder: a folder called pages beside it would be taken for its pages."""

"""Streamlit's entry script, in its own folder because Streamlit scans a neighboring pages folder."""

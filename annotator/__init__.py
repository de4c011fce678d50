"""An annotation tool for multi-label images: one click an image, a model that finds the missing labels.

Imports nothing, so that the page stays free of torch and the worker free of Streamlit.
"""

__version__ = "0.1.0"

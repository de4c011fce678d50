"""Interpretation of a source's columns, cells and files, shown to users and changed by options.

All imports share it. Unsure decisions become questions, and nothing is stored until they are answered.
"""

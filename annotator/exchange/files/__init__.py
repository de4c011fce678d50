"""Reading and writing of large, broken or hostile files, without knowledge of formats and projects.

Start with text_files.py.
"""

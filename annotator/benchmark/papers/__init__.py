"""`annotator bench papers`: paper tables on single positive labels, next to reproductions.

tables.json has printed figures and the comparison per row. Start with tables.py.
"""

"""`annotator bench papers`: tables of papers on single positive labels, reproduced next to the originals.

tables.json has printed figures and the comparison per row. Start with tables.py.
"""

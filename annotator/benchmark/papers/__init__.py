"""`annotator bench papers`: tables of single positive label papers, reproduced next to the originals.

tables.json has printed figures and the comparison per row. Start with tables.py.
"""

"""`annotator bench papers`: the tables of the papers on single positive labels, repeated and set beside the originals.

tables.json has the figures as they are printed, and for each row the comparison that repeats it. Begin with tables.py.
"""

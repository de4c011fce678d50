"""`annotator bench variants`: what packaged networks give within twice the time of the default.

variants.py lists the passes of each variant and what it makes of them. Begin with measure.py.
"""

"""`annotator bench variants`: what can be had from the packaged networks within twice the time of the default.

measure.py            the comparison: `measure`
variants.py           the variants: which passes each takes, and what it makes of them
passes.py             images through a packaged network at some size, perhaps mirrored; seconds of a pass
small_objects.py      two made-up collections with small objects
"""

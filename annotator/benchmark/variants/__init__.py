"""`annotator bench variants`: the packaged networks within twice the time of the default.

variants.py lists the passes of each variant and what it makes of them. Begin with variant_measurement.py.
"""

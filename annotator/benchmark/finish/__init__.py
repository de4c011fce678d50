"""`annotator bench finish`: a public benchmark of finishing a data set, also for other tools.

Start with finish_measurement.py.
"""

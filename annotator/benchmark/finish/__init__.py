"""`annotator bench finish`: a public benchmark of finishing a data set, for other tools as well.

protocol.py says what a tool is given, asks and is answered; docs/finish-benchmark.md describes it. A tool runs in a
process of its own (adapters.py, host.py). Begin with finish_measurement.py.
"""

"""`annotator bench data`: the cost of exporting and importing made-up labels in each format.

Each step runs in a process of its own beside a floor that reads and writes the same files with a plain library.
Begin with formats_measurement.py.
"""

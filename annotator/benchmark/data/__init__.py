"""Data in, data out: what a project of made-up labels costs to export and to import in each format, beside a floor.

Begin with measure.py. made_up.py makes the projects, step.py does one step in a process of its own and measures it,
floors.py reads and writes the same files with pandas, pyarrow, numpy, json or ElementTree.
"""

"""Measurements that anybody can repeat: one file each, `measure(...)` in it, called by `annotator bench`.

Every one returns {"bench": name, "figures": {name: number}, "ratios": {name: number}} with the units in the names, and
measures ours and what it is compared with in the same run, in turns: figures of another day or machine say nothing.
Temporary projects and processes are gone when a measurement ends, however it ends.
"""

"""Measurements that people run on their own images or a researcher repeats, called by `annotator bench`.

Each `measure(...)` returns {"bench": name, "figures": {name: number}, "ratios": {name: number}} with units in the
names. It measures ours and its rival or floor in the same run, in turns: figures of another day or machine say nothing.
Temporary projects are gone when it ends, however it ends (scratch.py).
"""

"""Reproducible measurements on own or public images, for `annotator bench`.

Each `measure(...)` returns {"bench": name, "figures": {name: number}, "ratios": {name: number}}. Candidates
and baseline alternate in one run, because other days or machines are not comparable.
"""

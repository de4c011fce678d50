"""Reproducible measurements on own or public images, for `annotator bench`.

Each `measure(...)` returns {"bench": name, "figures": {name: number}, "ratios": {name: number}}. What is compared
alternates in one run, because other days or machines are not comparable.
"""

"""The duties of the worker beside training: heat maps, comparisons of networks, the map, first guesses.

Begin with explain.py, which draws one heat map.
"""

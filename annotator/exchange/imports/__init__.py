"""From a source to the project: show what would change, then store all of it or nothing.

origin.py finds the format of what a person names, class_map.py the class of the project that a name stands for. Begin
with importing.py.
"""

"""From a source to the project: preview the changes, then store all of them or none.

located_source.py finds the format of the source that a person names, class_map.py the class of the project that a name
stands for. Begin with import_plan.py.
"""

"""Reading and writing files that may be large, broken or hostile, whatever their format.

problems.py collects what is wrong with a file, so that all of it is reported at once. Knows no format and no project.
Begin with problems.py.
"""

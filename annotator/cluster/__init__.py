"""Calls of a function on the machines of a Ray cluster; knows nothing of projects.

Ray is an extra that most machines lack, so it is imported inside functions. Imports only annotator.errors. Begin with
task_runner.py.
"""

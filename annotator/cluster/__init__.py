"""Function calls on a Ray cluster, independent of projects. Begin with task_runner.py."""

"""The common base of all benchmarks: processes, a browser, projects, a Ray cluster and floors, one file each.

Whatever is started here ends with the benchmark, even when that is killed (child_runner.py). Begin with
child_processes.py.
"""

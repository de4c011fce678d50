"""What tests and benchmarks share: processes, a browser, projects, answers, requests, pages and floors, one file each.

Whatever is started here ends with the benchmark, even when that is killed (child_runner.py). Begin with
child_processes.py.
"""

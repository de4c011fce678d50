"""`annotator bench faults`: people work on a real server and worker while both are killed and stalled.

simulated_pages.py speaks the protocols of the pages, system.py starts and harms the processes, guarantee_checks.py
checks every guarantee
at the end. command_kills.py kills single commands, one scene each (scenes/). Begin with fault_measurement.py.
"""

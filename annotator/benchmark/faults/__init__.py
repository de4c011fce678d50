"""`annotator bench faults`: people work on a real server and worker while both are killed and stalled.

people.py speaks the protocols of the pages, system.py starts and harms the processes, compare.py checks every guarantee
at the end. interrupted.py kills single commands, one scene each (scenes/). Begin with measure.py.
"""

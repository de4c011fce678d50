"""The parts of the Export page: choosing, what an export would hold, writing it in the background, tags.

start_section.py begins an export, which export_runner.py writes. Begin with pages/export.py.
"""

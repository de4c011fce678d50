"""The parts of the Export page: choosing, what an export would hold, writing it in the background, tags.

ordering.py begins an export, which running.py writes. Begin with pages/export.py.
"""

"""The parts of the Export page. choosing.py has the widgets, columns.py those of a CSV's columns, and kept.py keeps
what they show; outlook.py shows what an export would hold, card.py its data card; ordering.py begins one, which
running.py writes in the background, and tags.py compares those that were tagged. Begin with pages/export.py.
"""

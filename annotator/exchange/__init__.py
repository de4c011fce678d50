"""Project creation, imports and exports without torch. May import quality, snapshot and store.

Start with imports/import_plan.py and exports/export_writer.py.
"""

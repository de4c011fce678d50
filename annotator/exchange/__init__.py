"""Project creation, imports and exports. May import quality, snapshot and store. Never loads torch.

Start with imports/import_plan.py and exports/export_writer.py.
"""

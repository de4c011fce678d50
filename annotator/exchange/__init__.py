"""Data in, data out: making a project, importing, exporting; without torch.

project_setup.py is `annotator init`. formats/ has one file a format, for imports/ and exports/ alike; sources/ unpacks
or downloads images that are not in a folder; files/ reads files that may be broken or hostile. May import quality,
snapshot and store. Begin with imports/import_plan.py and exports/export_writer.py.
"""

"""Data in, data out: making a project, importing, exporting; without torch.

setup.py is `annotator init`. formats/ has one file a format, for imports/ and exports/ alike; sources/ makes files of
what is no folder; files/ reads what may be broken or hostile. May import quality, snapshot and store. Begin with
imports/importing.py and exports/export.py.
"""

"""Data in, data out: making a project from a folder, and writing the finished data set; without torch.

setup.py is `annotator init`; data_set.py reads the labels at one moment and export.py writes them with one of
formats/; thresholds.py decides which unknown cells the model may fill in; data_card.py describes the export.
destination.py refuses to overwrite. May import quality, snapshot and store; begin with export.py.
"""

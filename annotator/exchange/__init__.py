"""Data in, data out: making a project from a folder, importing, and writing the finished data set; without torch.

setup.py is `annotator init`; importing.py reads labels and images in any of formats/, shows what would change and
stores it. origin.py finds out what a person names, which sources/ unpack or download; folders.py registers images.
data_set.py reads the labels at one moment, as choices.py says, block by block (cells.py, counted by tallies.py), and
export.py writes them with one of formats/ to an output.py, which destination.py may refuse. thresholds.py decides which
unknown cells the model may fill in, splits.py which image is in which split and near_duplicates.py which stay together;
image_files.py names and writes the images, losses.py says what a format cannot hold, data_card.py describes the export.
tags.py gives an export a name, diff.py compares two, hub.py uploads one. outside_predictions.py stores scores of other
models, which score_tables.py and score_frames.py read. frames.py makes tables for programs, answers.py stores what
programs decide. May import quality, snapshot and store; begin with export.py.
"""

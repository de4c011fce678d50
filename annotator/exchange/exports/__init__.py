"""From the project to a data set: data_set.py reads the labels at one moment, as choices.py says, block by block
(cells.py, counted by tallies.py), and export.py writes them with a format to an output.py, which destination.py may
refuse. thresholds.py decides which unknown cells the model may fill in, splits.py which image is in which split and
near_duplicates.py which stay together; image_files.py names and writes the images, losses.py says what a format cannot
hold, data_card.py describes the export. summary.py counts what an export would hold, command.py is the command line
that makes it, and archive.py packs one for a download. tags.py gives an export a name, diff.py compares two, hub.py
uploads one. Begin with export.py.
"""

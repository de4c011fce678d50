"""From the project to a data set, block by block, as of one moment.

export_options.py declares what can be chosen. data_set.py reads the labels that choices.py names, a format writes them
to an Output (output.py), and all files appear at the end or not at all. Begin with export_writer.py.
"""

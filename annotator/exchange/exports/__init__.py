"""Export of a project as a data set, block by block, as of one moment.

export_options.py declares the choices. data_set.py reads the labels that choices.py selects, and a format writes them
to an Output (output.py). Start with export_writer.py.
"""

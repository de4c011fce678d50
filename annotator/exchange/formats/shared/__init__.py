"""What several formats read or write alike, so that each says only what is its own.

label_table.py reads labels that people have in CSV and TSV, label_arrays.py arrays, class_list.py lists of classes.
provenance.py writes the files beside a format that has no room for who gave a label and reads them back, extras.py the
same as JSON where a format has room, card_beside.py reads the data card. cell_columns.py is the cells of a block as
text, times.py times, split_names.py the names of splits.
"""

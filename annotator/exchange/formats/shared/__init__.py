"""Code that several formats use for reading or writing, so that each file of a format has only its own rules.

label_table.py reads labels in CSV and TSV, sidecars.py and embedded_extras.py keep who gave each label. Begin with
label_table.py.
"""

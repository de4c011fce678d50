"""What several formats read or write alike, so that each says only what is its own.

label_table.py reads labels in CSV and TSV, provenance.py and extras.py keep who gave each label. Begin with
label_table.py.
"""

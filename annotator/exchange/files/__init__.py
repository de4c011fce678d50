"""Files of other people, which may be large, broken or hostile: problems.py collects what is wrong with one.

text.py, lines.py, json_stream.py and npy.py read; growing.py writes arrays whose length is not known before.
text_cells.py is text in the cells of a CSV, xml_text.py in XML; yaml_text.py reads YAML, tables.py Parquet and Arrow
by batches that fit into memory (page_headers.py says what a Parquet file unpacks to); safe_names.py makes names that
every system allows, inside.py keeps paths inside of their folder, addresses.py finds the name of an image in an
address. Knows no format and no project.
"""

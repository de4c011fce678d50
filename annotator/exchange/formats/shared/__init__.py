"""Reading and writing code shared by formats. Start with label_table.py."""

"""Description of an export in Croissant, the metadata format of MLCommons for data sets.

croissant_document.py builds the description, croissant_facts.py reads what only people know.
"""

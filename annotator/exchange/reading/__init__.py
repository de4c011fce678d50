"""The reading of a source: what its columns, cells and files mean, as shown to a person and changed by options.

Every door (import, init, predictions, the pages) reads by the same Reading. Where the meaning could be another, the
decision is a question (Decided.is_sure is False), and nothing is stored until it is settled. Begin with
reading_options.py.
"""

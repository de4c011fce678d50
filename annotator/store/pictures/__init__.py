"""The content of image files: the only decoder, EXIF, colours, files of a folder; no database.

The network sees the pixels that the browser shows. decoding_budget.py bounds the memory of all threads. Begin with
decoding.py.
"""

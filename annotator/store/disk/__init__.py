"""Bytes and names on a disk: durable writes, private folders, files that may not answer; no database.

Begin with durable.py.
"""

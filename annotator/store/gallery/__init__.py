"""Images as the Gallery filters, sorts and shows them: columns in memory, brought up to date by changes.

Begin with image_columns.py.
"""

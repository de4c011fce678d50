"""What several pages are made of: the frame, the table of pages, forms and lists.

Begin with navigation.py and frame.py.
"""

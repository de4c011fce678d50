"""Parts that several pages share: the frame, the table of pages, forms and lists.

Begin with navigation.py and frame.py.
"""

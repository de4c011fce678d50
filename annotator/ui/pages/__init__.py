"""The pages, each with a function `page`. Begin with shared/navigation.py.

A page of several files has a folder, with `page` in its module NAME_page. Pages do not import each other.
pages/shared/ has the scripts of several pages, start/ those of home/.
"""

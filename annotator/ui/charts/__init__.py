"""The charts of the Progress and Certificate pages, one module a page: a table in, a chart out.

theme.py has the colours of both themes and what all charts share. Begin there.
"""

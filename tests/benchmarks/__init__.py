"""Measurements of the program itself: `make bench NAME=store`. __main__.py has their commands."""

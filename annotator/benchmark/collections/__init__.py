"""`annotator bench collections`: compare `auto` with the best published method on many collections.

Constants are chosen on some collections and judged on the others (searched_settings.py); recipes.py makes collections
from what
is installed with the program. Begin with collections_comparison.py.
"""

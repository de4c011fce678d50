"""`annotator bench collections`: is `auto` the first everywhere? Many collections, constants chosen on the others.

measure.py            all methods and settings on all collections: `measure`
recipes.py            collections that the program makes itself, from what is installed with it
settings.py           the settings of `auto` that are tried, and which of them is chosen without a collection
report.py plot.py     tables, and a picture
"""

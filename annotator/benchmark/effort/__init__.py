"""How many labels are finished for how much of a person's effort: `annotator bench effort`. Begin with measure.py.

people.py answers, session.py does one action after the other, policies.py chooses it, curves.py and plot.py show
what came of it.
"""

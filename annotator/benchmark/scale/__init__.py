"""What a project of a million images costs, step by step, beside what no program could do without.

measure.py is `annotator bench scale` and the place to begin; step.py is the process in which a step is measured, and
made_up.py makes images that exist as features, region codes and labels only.
"""

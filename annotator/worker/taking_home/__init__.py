"""Making a classifier of a project's current run, which works without the project and without torch.

Begin with writing.py: what `annotator classifier` calls. exchange/classifier/ runs what is written here.
"""

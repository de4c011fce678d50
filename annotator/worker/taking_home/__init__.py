"""Making a classifier of a project's current run, which works without the project and without torch.

Begin with classifier_writer.py: what `annotator classifier` calls. exchange/classifier/ runs what is written here.
"""

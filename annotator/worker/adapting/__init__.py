"""`annotator adapt`: fine-tune the last stages of a project's backbone, resumably and at low priority.

Start with adapt_now.py.
"""

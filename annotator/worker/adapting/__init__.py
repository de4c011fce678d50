"""`annotator adapt`: train the last stages of a project's network on its answers.

One process at a time does it, beside the worker and at low priority. It may be killed at any moment and goes on from
its last epoch. The new network is used only if it is better on answers that it has not seen, and only once all images
have features of it (backbone_switching.py). Begin with adapt_now.py.
"""

"""Training whole networks, and heads on feature maps.

fit_network.py has `fit_network`, the same generator of epochs as linear/training.py, and is the place to begin.
views.py and augment.py make its batches, whole_network.py joins backbone and classifier, linear_start.py trains the
classifier beforehand, optimisers.py and checkpoints.py are what their names say.

adapt.py trains the last stages of a pretrained network (last_stages.py) on the answers of a project (answers.py), alone
or together with other processes (together.py); probe.py says how good features are for these answers.
"""

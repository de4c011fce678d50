"""Training whole networks, heads on feature maps, and the last stages of a project's network.

fit_network.py is the same generator of epochs as linear/training.py; adapt.py trains the last stages on the answers of
a project. best_epoch.py is what one stage hands to the next. Begin with fit_network.py.
"""

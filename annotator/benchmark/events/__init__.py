"""Events: what answers to whole events save, and what the model gains from them.

scenes.py makes a set of images with events, places and times of photos whose truth is known; event_savings.py lets
simulated
people work on it with and without its events. Begin with event_savings.py.
"""

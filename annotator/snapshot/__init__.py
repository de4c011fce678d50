"""One consistent view of a run and of what was answered since; without torch.

A Snapshot holds the run's probabilities, its rankings and the delta of decisions, read in one transaction; suggestions,
the Gallery, the Map and the time model are made of it. May import only the store and what is below it. Begin with
snapshot.py.
"""

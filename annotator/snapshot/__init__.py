"""One consistent view of a run and of what was answered since; without torch.

snapshot.py reads that view as of one moment, and is the place to begin: the current run's probabilities
(predictions.py), the order the worker gave to their cells (rankings.py, merged from blocks by merging.py), and what
people answered since (delta.py). suggestions.py makes suggestions of it. image_map.py is the map as the page reads it,
gallery.py the Gallery's listings and listed_rows.py their order, status.py the state of the project, networks.py the
networks it can choose from, time_model.py the seconds per task and time_report.py their intervals, guesses.py which
classes of an image start as present. May import only the store and what is below it.
"""

"""One consistent view of a run and of what was decided since; without torch.

predictions.py maps the current run's probabilities, rankings.py reads what the worker sorted beforehand, delta.py
holds the cells answered since. suggestions.py combines the three into suggestions, and is the place to begin.
image_map.py is the map as the page reads it, status.py the state of the project, time_model.py the seconds per task.
May import only the store and what is below it.
"""

"""`annotator bench methods`: every method, side by side, on anybody's data; measure.py is the way in."""

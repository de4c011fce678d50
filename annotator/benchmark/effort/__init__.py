"""How many labels are finished for how much of a person's effort: `annotator bench effort`."""

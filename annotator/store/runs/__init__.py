"""Training results: runs, their versions and probabilities, and imported predictions."""

"""Training results: runs, their versions and probabilities, and imported predictions. Start with runs.py."""

"""`annotator bench methods`: compare all training methods. Start with methods_comparison.py."""

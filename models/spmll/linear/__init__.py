"""Training of linear heads on cached features. Start with training.py."""

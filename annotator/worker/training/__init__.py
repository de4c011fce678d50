"""training: to be described."""

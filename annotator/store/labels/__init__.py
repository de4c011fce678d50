"""labels: to be described."""

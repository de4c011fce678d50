"""disk: to be described."""

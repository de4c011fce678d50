"""work: to be described."""

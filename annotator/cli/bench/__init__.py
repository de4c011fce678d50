"""bench: to be described."""

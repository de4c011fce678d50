"""duties: to be described."""

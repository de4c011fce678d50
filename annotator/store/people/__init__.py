"""people: to be described."""

"""parts: to be described."""

"""database: to be described."""

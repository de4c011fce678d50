"""serving: to be described."""

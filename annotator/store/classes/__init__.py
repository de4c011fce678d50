"""classes: to be described."""

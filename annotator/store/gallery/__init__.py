"""gallery: to be described."""

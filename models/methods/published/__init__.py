"""published: to be described."""

"""pictures: to be described."""

"""images: to be described."""

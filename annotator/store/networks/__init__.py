"""networks: to be described."""

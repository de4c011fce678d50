"""features: to be described."""

"""runs: to be described."""

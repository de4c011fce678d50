"""upkeep: to be described."""

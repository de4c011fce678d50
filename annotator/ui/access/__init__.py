"""access: to be described."""

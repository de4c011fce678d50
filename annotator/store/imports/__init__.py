"""imports: to be described."""

"""Long work of pages in threads, with state that survives reloads. Begin with computations.py."""

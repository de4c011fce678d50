"""Long work that pages start, in threads that survive reloads. Begin with computations.py."""

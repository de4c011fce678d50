"""The project's backbone: settings, comparisons, adaptation and embedding claims. Start with configuration.py."""

"""The project's backbone: settings, comparisons, adaptation and embedding progress."""

"""First guesses from class names by a text-image network, without training."""

"""Training of whole networks, map heads and last stages. Start with fit_network.py."""

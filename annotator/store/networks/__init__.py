"""The project's network: its settings, comparisons with others, adapting it, and claims to embed with it.

One process at a time adapts (adaptation.py) or embeds (embedding_claim.py). Begin with configuration.py.
"""

"""The project's network: its settings, comparisons with others, adapting it, who is embedding.

One process at a time adapts (adaptation.py) or embeds (embedding.py). Begin with configuration.py.
"""

"""From image files to embeddings: order, computation and stored regions. Entry point: embed.py."""

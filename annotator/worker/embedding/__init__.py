"""`annotator embed`: compute missing embeddings, here or on a Ray cluster. Start with embed_now.py."""

"""`annotator embed`: compute missing embeddings, here or on a Ray cluster."""

"""Image files -> features: the order of embedding, embedding itself, and stored regions, maps and codes.

worker_context.py is the state that all duties share: features, network, heartbeat, the request to stop. Begin with
embed.py.
"""

"""Image files -> features: what is embedded next, embedding it, what is kept of regions, maps and codes.

context.py is what all duties share: features, network, heartbeat, the wish to stop. Begin with embed.py.
"""

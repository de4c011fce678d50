"""Pretrained networks, their weights and fast inference. Start with `frozen_backbone.py`."""

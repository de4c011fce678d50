"""Published methods for single positive labels. Start with loss_only.py, then gr.py."""

"""Worker duties other than training, such as heat maps and prelabels. Start with explain.py."""

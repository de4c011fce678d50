"""Worker duties other than training, such as heat maps and prelabels."""

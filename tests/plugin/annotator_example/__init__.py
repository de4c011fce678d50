"""A format (tag_list.py) and a backbone (random_colors.py)."""

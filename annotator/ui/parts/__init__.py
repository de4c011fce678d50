"""Parts shared by several pages. Begin with frame.py."""

"""Image file locations: local folders, object stores and web servers. Start with location.py."""

"""Images and their files: registration, names, neighbors, browser copies and lists.

An image is a content (sha256), so moved or copied files keep its decisions. Start with images.py.
"""

"""The Images page. Begin with images_page.py."""

"""The Gallery page. Begin with gallery_page.py and gallery.js."""

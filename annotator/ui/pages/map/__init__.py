"""The Map page. Begin with map_page.py and map.js."""

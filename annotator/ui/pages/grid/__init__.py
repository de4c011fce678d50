"""The Grid page: many images and one class. Begin with grid_page.py and grid.js."""

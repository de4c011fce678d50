"""The Annotate page: one image at a time. Begin with annotate_page.py and annotate.js."""

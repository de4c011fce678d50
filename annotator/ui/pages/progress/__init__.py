"""The Progress page. Begin with progress_page.py."""

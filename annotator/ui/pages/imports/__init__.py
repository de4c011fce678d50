"""The Import page: upload, preview, history. Begin with imports_page.py and import_runner.py."""

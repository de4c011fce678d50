"""The Export page. Begin with export_page.py and shared/work/export_runner.py."""

"""The Agreement page. Begin with agreement_page.py."""

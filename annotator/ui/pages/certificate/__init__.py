"""The Certificate page. Begin with certificate_page.py."""

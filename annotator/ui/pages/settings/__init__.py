"""The Settings page. Begin with settings_page.py."""

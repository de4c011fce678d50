"""The Autopilot page. Begin with autopilot_page.py and autopilot.js."""

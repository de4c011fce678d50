"""The speed test page. Begin with speed_test_page.py and speed_test.js."""

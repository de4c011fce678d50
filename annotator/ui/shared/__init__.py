"""Page parts and route checks that several pages use. Begin with navigation.py and page_access.py."""

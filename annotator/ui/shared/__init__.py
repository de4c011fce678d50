"""Page parts and route checks that several pages use. Begin with navigation.py and frame.py."""

"""Several projects behind one URL, with a server process per project. Begin with home_server.py."""

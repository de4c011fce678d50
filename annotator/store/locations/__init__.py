"""Where image files are: in folders on a disk, or at addresses of object stores and web servers.

addresses.py and web.py say which addresses are allowed; every wait has an end. A Location needs no project and can be
pickled. Begin with location.py.
"""

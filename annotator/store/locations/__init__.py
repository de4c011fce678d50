"""The places of image files: folders on a disk, or addresses of object stores and web servers.

addresses.py and web_servers.py decide which addresses are allowed; every wait has an end. A Location needs no project
and can be pickled. Begin with location.py.
"""

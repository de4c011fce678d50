"""Where image files are: in folders on a disk, or at addresses of object stores and web servers, read as they lie.

location.py    one file of a registered folder, checked to hold its image still; needs no project, and can be pickled
objects.py     reading at addresses, with an end to every wait
cache.py       fetched originals and copies of a project, bounded by bytes, least recently used first out
addresses.py file_systems.py web.py    which addresses are allowed, and what web servers may do
listing.py staged_listing.py           what lies at an address, page by page, gone on with after a kill
"""

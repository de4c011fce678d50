"""Several projects behind one address: a start page, and a server process for each project.

Processes of their own cannot slow, lock or crash each other. The start page passes nothing on: a reverse proxy does,
and on one's own computer each project has a port. Projects are made here (new_project.py), and renamed or moved to the
trash (project_page.py). Begin with home_server.py.
"""

"""Several projects behind one address: a start page with those that a visitor may open, and a server for each.

    projects.py      the projects in the folders that were named, and what is wrong with some
    child.py         one project's server, as a process of its own
    children.py      starts them, and starts one again when it dies
    start_page.py    the page, and whose it is
    running.py       all of it together, until told to end; the file for a reverse proxy

Each project is served by a process of its own, so that none can slow, lock or crash another. The start page passes
nothing on to them: a reverse proxy does (Caddy, which a team needs for TLS anyway), and on one's own computer each has
a port. Begin with running.py.
"""

"""The web server process: Streamlit pages, their routes and worker supervision. Begin with server.py.

Layers from the lowest up: streamlit_features.py, access, serving, shared, routes, pages, entry and route_table.py,
server.py, home.
"""

"""The page process: Streamlit pages, the routes of their components, the watch over the worker; no torch.

Rooms from the lowest up: access, charts, work; parts, serving; components, export; pages, entry, routes. server.py
starts one project's server, home/ those of several. May import queues, exchange, quality, snapshot and store; never
worker. Begin with server.py.
"""

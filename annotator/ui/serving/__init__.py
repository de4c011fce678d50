"""The server's own work: the worker beside it, sockets, threads that read images, logs, the shutdown.

Begin with worker_watch.py.
"""

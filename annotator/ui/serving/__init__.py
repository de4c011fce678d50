"""The server's infrastructure: worker, sockets, image reading, logs. Begin with worker_watch.py."""

"""HTTP routes that belong to no single page, and those of programs. Begin with shared/guard.py.

Disk access runs in threads, because blocking an async route stalls every browser.
"""

"""HTTP routes used by several pages or by external programs. Begin with shared/guard.py.

Disk access runs in threads, because blocking an async route stalls every browser.
"""

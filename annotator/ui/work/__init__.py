"""Long work that pages begin and watch: adding folders, imports, uploads, downloads, computations.

Each runs in a thread of the page process and keeps its state there, so that a reload comes back to it. Begin with
computations.py.
"""

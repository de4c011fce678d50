"""Images and the files they lie in: registration, names, neighbours, copies for the browser, lists.

An image is a content (sha256) and a file is a place where that content lies, so a moved or copied file never moves a
decision. Begin with images.py; registration.py registers folders, name_matching.py finds images by name.
"""

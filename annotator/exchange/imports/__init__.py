"""From a source to the project: importing.py reads labels and images in any format, shows what would change and stores
it as one. origin.py finds out what a person names, folders.py registers images, class_map.py says which class of the
project a name of the source stands for, and in_words.py says what would change and what has. Begin with importing.py.
"""

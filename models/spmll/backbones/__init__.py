"""Pretrained networks, their weights and their fastest form on this machine.

frozen_backbone.py loads a network by name from sources/. packaged.py, curated.py, licenses.py, families.py and hub.py
list networks and their licences without loading torch. cam.py draws the Grad-CAM heat map of a linear head. Begin with
frozen_backbone.py.
"""

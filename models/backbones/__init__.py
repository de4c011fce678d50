"""Pretrained networks, their weights and their fastest form on this machine.

networks.py loads a network by name from sources/. packaged.py, curated.py, licences.py, families.py and hub.py list
networks and their licences without loading torch. cam.py draws the Grad-CAM heat map of a linear head. Begin with
networks.py.
"""

"""Pretrained networks, their weights and their fastest form on this machine.

networks.py loads one by name from sources/; packaged.py, curated.py, licences.py, families.py and hub.py say without
torch what there is and on which terms. cam.py is the Grad-CAM heat map of a linear head. Begin with networks.py.
"""

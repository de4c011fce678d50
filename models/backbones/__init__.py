"""Pretrained networks, their weights and their fastest form on this machine.

networks.py loads one by name and is the place to begin; packaged.py lists those that are installed, without torch;
pretrained.py finds weights, local_dir.py writes a network for timm to load, fast.py folds and traces,
feature_maps.py gives the last map, cam.py the Grad-CAM heat map of a linear head.
"""

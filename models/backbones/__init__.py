"""Pretrained networks, their weights and their fastest form on this machine.

networks.py loads one by name and is the place to begin. Without torch: packaged.py lists those that are installed,
curated.py those worth a choice, licences.py what binds their users, families.py those that are used otherwise than by
default, hub.py what was downloaded.

pretrained.py finds one by name among sources/; published.py says where its weights lie, and under which licence;
joined.py makes one of several; anatomy.py tells what it gives of an image and its regions; local_dir.py writes one for
timm to load, fast.py folds it or reduces its precision, batches.py finds how many images a GPU takes at once,
feature_maps.py gives the last map, cam.py the Grad-CAM heat map of a linear head, occlusion.py what else it may
show, text_image.py images and texts in one space.
"""

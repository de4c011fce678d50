"""Features of images in shards: what embedding leaves on the disk for training and scoring.

    contents.py  which content each image id stands for
    shards.py    one shard: packed, published, checked when it is read
    basis.py     the axes along which regions are coded
    rows.py      an array of many shards as one, of which rows are read when they are asked for
    cache.py     FeatureCache: the shards of one backbone as one list of images; begin there
    image_codes.py    the codes of whole images, by which a worker corrects a run, kept for the next worker

Any process may write shards, on this machine or another one: the worker, `annotator embed`, a task of a cluster. A
shard is there as a whole or not at all, and it is checked against its own name, so that a killed writer costs its shard
and nothing else. The same image in two shards does no harm. Nothing here loads torch.
"""

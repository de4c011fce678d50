"""`annotator bench scale`: what a project of millions of images costs, step by step, beside a floor.

Each step runs in a process of its own whose memory is watched; room.py refuses what the disk cannot hold. cluster.py is
`annotator bench cluster`. Begin with scale_measurement.py.
"""

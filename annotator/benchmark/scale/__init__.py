"""What a project of millions of images costs, step by step, beside what no program could do without.

measure.py is `annotator bench scale` and the place to begin. steps.py has the steps, each in a process of its own, of
which watched.py reads the memory; page.py is the one that is a server; training.py is what a training does, phase by
phase. made_up.py makes images that exist as features, region codes and labels only, files.py photos of any size.
room.py refuses what the disk cannot hold, growth.py says what sizes that were measured predict for ten million images,
and report.py prints all of it. cluster.py is `annotator bench cluster`: photos on a Ray cluster of this machine, with
killed workers.
"""

"""What survives: people at work on a real server and worker while both are killed, stalled and cut off from the disk.

measure.py is the way in; people.py speaks the protocols of the pages, hands.py knows who has what open, system.py
starts and harms the processes, compare.py says at the end whether every promise was kept.
"""

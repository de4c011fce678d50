"""What survives: annotators work on a real server and worker while both are killed, stalled and cut off from the disk.

Begin with measure.py. people.py speaks the protocols of the pages, hands.py tracks which page holds what, system.py
starts and harms the processes, compare.py checks every guarantee at the end.

interrupted.py kills single commands, each of which has a scene (scenes/); dying.py starts and kills them.
"""

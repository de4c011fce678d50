"""The queues: what a person is asked next, one file a kind of work; without torch.

Everything that is handed out is leased (store/people/leases.py), but for the tasks of speed_test_tasks.py. autopilot/
compares the kinds of work. May import quality, snapshot and store; never ui, worker or exchange. Begin with
image_queue.py.
"""

"""What a person is asked next: one file per kind of work, without torch.

annotate.py hands out single images and is the place to begin; review.py and grid.py hand out suggestions,
audit_grid.py cells of an audit, by_annotator.py filters by person, selection.py images picked on the map;
query_order.py is the order of single images. autopilot/ compares these kinds of work. Everything that is handed out
is leased (store/people/leases.py), but for the tasks of speed_test.py, whose answers are not kept. May import quality,
snapshot and store; never ui, worker or exchange.
"""

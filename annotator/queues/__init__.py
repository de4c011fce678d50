"""The queues: the next work for an annotator, one file per kind, without torch.

Never imports ui, worker or exchange. Entry point: image_queue.py.
"""

"""The queues: the next work for an annotator, leased (reserved) to one page. Never loads torch.

Never imports ui, worker or exchange. Start with image_queue.py.
"""

"""Label quality: audits, the quality report, auto-accept and annotator agreement. Never loads torch.

May import snapshot, store and spmll.statistics. Start with audit_sampling.py.
"""

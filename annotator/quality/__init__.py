"""The quality of the labels and how sure it is: audits, the certificate, auto-accept; without torch.

audit_sampling.py draws cells, certification.py estimates recall and precision from their answers, auto_accept.py
accepts cells under a precision guarantee, annotator_agreement.py compares people. May import snapshot, store and
spmll.statistics. Begin with audit_sampling.py.
"""

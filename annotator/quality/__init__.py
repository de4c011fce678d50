"""How good the labels are, and how sure that is: audits, the certificate, auto-accept, disagreement; without torch.

audit.py draws the sample, certificate.py estimates recall and precision from its answers (certificate_records.py),
shortfall.py says what is missing for a target; auto_accept.py fills in cells under a precision guarantee.
model_disagreement.py and annotator_disagreement.py list likely mistakes; evidence.py decides whether a figure may be
shown. May import snapshot, store and models.statistics; begin with audit.py.
"""

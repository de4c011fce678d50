"""How good the labels are, and how sure that is: audits, the certificate, auto-accept, disagreement; without torch.

audit.py draws the audit sample, certificate.py estimates recall and precision from its answers
(certificate_records.py), also allowing for mistakes of people, which double_reading.py counts; shortfall.py says what
is missing for a target, evidence.py whether a figure may be shown.
auto_accept.py accepts cells where an audit sample (auto_accept_sample.py) shows a precision guarantee (guarantee.py).
model_disagreement.py and annotator_disagreement.py list likely mistakes, agreement.py measures how well
people agree, people.py how each of them answers, differing.py what to take for true where they differ
(first_answers.py: how probable it is). May import snapshot, store and models.statistics; begin with audit.py.
"""

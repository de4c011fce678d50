"""Relations of classes: a spaniel is a dog, day and night are never both present.

People declare them (relation_edits.py: appended, never changed); what an answer implies follows from them
(implication.py), and is held in the room `labels`. Begin with declared_relations.py.
"""

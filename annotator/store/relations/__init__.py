"""Class relations: a spaniel is a dog, and day and night exclude each other. Start with declared_relations.py."""

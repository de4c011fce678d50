"""Class relations: a spaniel is a dog, and day and night exclude each other."""

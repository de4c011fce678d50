"""The learning code on tensors, without projects, pages or databases. Imports nothing, so torch stays optional."""

"""Decides: what a person does next, what is suggested, what the worker works on."""

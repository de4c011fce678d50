"""Asking a vision-language model on a server which classes an image shows, as a source of predictions.

Begin with tagging.py. What is asked and how an answer is read is in questions.py; requests, and what can go wrong with
them, in server.py.
"""

"""Asking a vision-language model on a server which classes an image shows, as a source of predictions.

Begin with tagging_run.py. What is asked and how an answer is read is in questions.py; requests, and what can go wrong
with them, in chat_server.py.
"""

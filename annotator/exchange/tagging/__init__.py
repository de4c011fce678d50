"""Classification by a vision-language model on a server, as a prediction source. Start with tagging_run.py."""

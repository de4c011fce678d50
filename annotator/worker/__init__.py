"""The worker process: it embeds images, trains, publishes runs and corrects them as decisions arrive.

Rooms from the lowest up: features; embedding, training; adapting; duties. process.py is the loop over the duties,
train_now.py is `annotator train`. May import everything below it but never Streamlit; it meets the page only in the
store. Begin with process.py.
"""

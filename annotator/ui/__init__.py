"""Shows: the Streamlit pages, the routes their components talk to, and the watch over the worker. No torch, no SQL."""

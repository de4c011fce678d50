"""The web server process: Streamlit pages, their routes and worker supervision. Begin with server.py."""

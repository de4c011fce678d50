"""Access to the app: who is let in, as which member, and how many requests they may make.

middleware.py lets requests in by the cookie, sessions.py knows members by theirs, tokens.py signs what pages send,
rate_limit.py bounds it. served_project.py is the project that is served. Begin with middleware.py.
"""

"""Access control of the app: sign-in, members and rate limits. Begin with middleware.py."""

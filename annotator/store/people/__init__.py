"""Members, roles, assignments, leases, blind work and activity of a project. Start with members.py."""

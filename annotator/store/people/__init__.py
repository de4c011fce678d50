"""People: members and roles, shares of the work, leases, what is hidden from whom, times.

members.py is who may do what, leases.py keeps two people off the same cell, blindness.py hides what is still to be
answered blind. Begin with members.py.
"""

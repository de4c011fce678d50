"""The classes of a project and the changes made to them. Start with classes.py."""

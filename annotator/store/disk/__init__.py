"""Durable writes, private folders and unresponsive files, without a database. Start with durable.py."""

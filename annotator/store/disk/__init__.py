"""Durable writes, private folders and unresponsive files, without a database."""

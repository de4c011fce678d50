"""Durable writes, private folders and reads from unresponsive disks, without a database."""

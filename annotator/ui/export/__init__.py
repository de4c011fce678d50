"""The parts of the Export page. Begin with pages/export.py."""

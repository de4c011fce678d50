"""In-memory image columns that the Gallery filters and sorts. Start with image_columns.py."""

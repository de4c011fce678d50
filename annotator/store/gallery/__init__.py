"""In-memory image columns that the Gallery filters and sorts."""

"""In-memory columns of image data, which the Gallery filters and sorts."""

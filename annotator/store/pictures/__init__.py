"""Image file content: the only decoder, EXIF and colors, without a database. Start with decoding.py."""

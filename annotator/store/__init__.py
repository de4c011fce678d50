"""The only room that touches the disk: one SQLite file, array files beside it, and the images people pointed at."""

"""The pages: one file each with a function `page`; the table is parts/navigation.py."""

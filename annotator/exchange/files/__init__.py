"""Reading and writing of large, damaged or hostile files. Knows no formats and projects. Start with text_files.py."""

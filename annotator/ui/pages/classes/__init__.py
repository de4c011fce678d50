"""The Classes page: list, editor, relations and tree. Begin with classes_page.py."""

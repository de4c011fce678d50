"""Names in the Croissant descriptions of exports, shared by their writer and reader."""

CROISSANT_NAME, CROISSANT_RECORDS_NAME = "croissant.json", "croissant_records.json"
"""Their names in a folder. Next to an exported file, they begin with its name and a dot."""
CROISSANT_VERSION_URL = "http://mlcommons.org/croissant/1.1"
RAI_VERSION_URL = "http://mlcommons.org/croissant/RAI/1.0"
CROISSANT_URL_PREFIX = "http://mlcommons.org/croissant/"
CLASS_SET_ID, IMAGE_SET_ID, SPLIT_SET_ID = "classes", "image_labels", "splits"
RECORDS_KEY = "records"
"""Key of the array of records in the records file."""
STATE_FIELDS = ("present", "absent", "unsure", "unanswered")
"""Fields of a record with class names."""


def is_croissant_name(name: str) -> bool:
    """Return whether an export gives this name to a Croissant description or to its records."""
    lower = name.lower()
    return any(lower == own or lower.endswith(f".{own}") for own in (CROISSANT_NAME, CROISSANT_RECORDS_NAME))

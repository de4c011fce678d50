"""The values of `image.stage`, the progress of an image."""

# of an image set aside (excluded_images.py) no queue asks anything
UNTOUCHED, SKIPPED, LABELED, COMPLETE, EXCLUDED = range(5)

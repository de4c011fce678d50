"""The stages of the work on an image: the column `image.stage`."""

# of an image set aside (excluded_images.py) no queue asks anything
UNTOUCHED, SKIPPED, LABELED, COMPLETE, EXCLUDED = range(5)

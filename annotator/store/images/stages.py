"""The stages of the work on an image: the column `image.stage`."""

UNTOUCHED, SKIPPED, LABELED, COMPLETE, ASIDE = range(5)  # of an image set aside (set_aside.py) no queue asks anything

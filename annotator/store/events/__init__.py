"""Events: images that belong together, such as the photos of one trigger of a camera trap.

They are found from capture times, places and what sources say (finding.py, capture.py), and changed by people
(edits.py). Changes are appended and never changed; `image_event` follows from them and from the images, and is read by
stored.py. answers.py has the answers that a person gives to an event as a whole. Begin with events.py.
"""

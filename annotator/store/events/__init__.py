"""Events: images that belong together, such as the photos of one trigger of a camera trap.

They are found from capture times, places and what sources say (finding.py, capture.py), and changed by people
(event_edits.py). Changes are appended and never changed; `image_event` follows from them and from the images, and is
read by stored_events.py. event_answers.py has the answers that a person gives to an event as a whole. Begin with
project_events.py.
"""

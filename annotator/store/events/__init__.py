"""Events: images that belong together, such as one trigger of a camera trap. Start with project_events.py."""

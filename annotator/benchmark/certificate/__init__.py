"""`annotator bench certificate`: coverage of the quality report's intervals. Start with coverage_measurement.py."""

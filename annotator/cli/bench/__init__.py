"""`annotator bench`: reproducible measurements on own or public images. Start with bench_inputs.py."""
